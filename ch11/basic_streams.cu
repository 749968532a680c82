// Four kernels that each fill a quarter of the GPU, in one stream and then in four: the same answers, sooner.
// mkdir -p build && nvcc -std=c++17 -O3 -I. ch11/basic_streams.cu -o build/basic_streams && build/basic_streams
#include <cmath>
#include <cstring>
#include <vector>

#include "ch06/shared_check.cuh"
#include "ch11/shared_branches.cuh"
#include "ch11/shared_chebyshev.cuh"

constexpr int KERNELS = 4, POINTS = 32 * THREADS, DEGREE = 32768;

// The four kernels, each on its stream; y has a row per kernel.
void launch(const float* x, float* y, const cudaStream_t* streams) {
    for (int i = 0; i < KERNELS; i++) {
        chebyshev<1><<<POINTS / THREADS, THREADS, 0, streams[i]>>>(x + i * POINTS, y + i * POINTS, POINTS, DEGREE);
        CHECK(cudaGetLastError());
    }
}

// Milliseconds from the fork to the join, all on `stream`.
float timed(cudaStream_t stream, Branches<KERNELS>& branches, const float* x, float* y, const cudaStream_t* streams) {
    cudaEvent_t begin, end;
    float milliseconds;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(begin, stream));
    branches.fork(stream);
    launch(x, y, streams);
    branches.join(stream);
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return milliseconds;
}

int main() {
    const size_t bytes = sizeof(float) * KERNELS * POINTS;
    std::vector<float> points(KERNELS * POINTS), one(points.size()), four(points.size());
    for (size_t i = 0; i < points.size(); i++) points[i] = 1.6f * i / points.size() - 0.8f;
    float *x, *y;
    cudaStream_t stream;
    CHECK(cudaMalloc(&x, bytes));
    CHECK(cudaMalloc(&y, bytes));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMemcpy(x, points.data(), bytes, cudaMemcpyHostToDevice));
    Branches<KERNELS> branches;
    const cudaStream_t same[KERNELS] = {stream, stream, stream, stream};

    timed(stream, branches, x, y, same);  // the first launch loads the kernel
    const float alone = timed(stream, branches, x, y, same);
    CHECK(cudaMemcpy(one.data(), y, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaMemset(y, 0xff, bytes));  // NaN, so that old answers are no answers
    CHECK(cudaDeviceSynchronize());
    const float together = timed(stream, branches, x, y, branches.streams);
    CHECK(cudaMemcpy(four.data(), y, bytes, cudaMemcpyDeviceToHost));

    for (size_t i = 0; i < points.size(); i++) {
        const double right = std::cos(DEGREE * std::acos(double(points[i])));
        if (!(std::abs(one[i] - right) <= 5e-4) || std::memcmp(&one[i], &four[i], sizeof(float))) {
            fprintf(stderr, "basic_streams: at %zu found %g and %g, expected %g\n", i, one[i], four[i], right);
            return 1;
        }
    }
    printf("%zu polynomials are right; one stream %.3f ms, four streams %.3f ms\n", points.size(), alone, together);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    return 0;
}
