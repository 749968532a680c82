// Stand-in for wgmma: a thread computes its own sums, at once or only when it waits for them.
#pragma once
#include "common/cuda/operands.cuh"
#include "common/cuda/tensor_cores.hpp"

namespace on_cpu {
using Group = std::vector<std::function<void()>>;
inline std::map<int, Group> started;
inline std::map<int, std::deque<Group>> committed;
inline const bool wgmma_ready = [] {
    begin_cluster = [] {
        started.clear();
        committed.clear();
        barriers.clear();
    };
    end_cluster = [] {
        for (auto& [thread, groups] : committed) {
            if (!groups.empty()) error = "a product was never waited for";
        }
    };
    return true;
}();
inline void wait_for_groups(size_t pending) {
    auto& groups = committed[thread_of_cluster()];
    while (groups.size() > pending) {
        for (auto& product : groups.front()) product();
        groups.pop_front();
    }
    meet_warp();  // the products are the warp's, and so is the wait
}
}  // namespace on_cpu

inline void wgmma_fence() {}
template <typename T, int SUMS>
void hold(T (&)[SUMS]) {}
inline void wgmma_commit() {
    on_cpu::committed[on_cpu::thread_of_cluster()].push_back(std::move(on_cpu::started[on_cpu::thread_of_cluster()]));
    on_cpu::started[on_cpu::thread_of_cluster()].clear();
    if (on_cpu::laziness == 0 || (on_cpu::laziness == 1 && on_cpu::sometimes())) {
        for (auto& group : on_cpu::committed[on_cpu::thread_of_cluster()]) {
            for (auto& product : group) product();
            group.clear();
        }
    }
}
template <int PENDING>
void wait_for_products(const char* file, int line) {
    if (!on_cpu::skips(file, line)) on_cpu::wait_for_groups(PENDING);
}
#define wgmma_wait_1 wait_for_products<1>(__FILE__, __LINE__)
#define wgmma_wait_0 wait_for_products<0>(__FILE__, __LINE__)

// PTX ISA, wgmma.mma_async m64n<N>k16, accumulator D: rows t / 32 * 16 + t % 32 / 4 (+ 8), columns 8 j + t % 4 * 2 (+ 1).
template <int N>
void multiply_64(float (&sum)[N / 2], uint64_t a, uint64_t b, bool add) {
    on_cpu::require(a >> 62 == 1 && b >> 62 == 1, "an operand of wgmma is not in the 128-byte swizzle");
    on_cpu::started[on_cpu::thread_of_cluster()].push_back([&sum, a, b, add, thread = threadIdx.x % 128] {
        for (int i = 0; i < 2; i++) {
            float row[16], column[16];
            on_cpu::read_row(row, a, thread / 32 * 16 + thread % 32 / 4 + 8 * i);
            for (int j = 0; j < N / 8; j++) {
                for (int e = 0; e < 2; e++) {
                    on_cpu::read_row(column, b, 8 * j + thread % 4 * 2 + e);
                    float& one = sum[4 * j + 2 * i + e];
                    one = (add ? one : 0) + on_cpu::dot(row, column);
                }
            }
        }
    });
}
inline void wgmma_64x128x16(float (&sum)[64], uint64_t a, uint64_t b, bool add) { multiply_64<128>(sum, a, b, add); }
inline void wgmma_64x192x16(float (&sum)[96], uint64_t a, uint64_t b, bool add) { multiply_64<192>(sum, a, b, add); }
inline void wgmma_64x256x16(float (&sum)[128], uint64_t a, uint64_t b, bool add) { multiply_64<256>(sum, a, b, add); }
inline void wgmma_64x176x16(float (&sum)[88], uint64_t a, uint64_t b, bool add) { multiply_64<176>(sum, a, b, add); }

// The same with a in registers, which are read when the product runs, and b MN-major: 16 rows, of which each panel holds 64 columns.
// Four lanes hold a row of a: each says where its registers are.
inline void wgmma_64x128x16(float (&sum)[64], const uint32_t* a, uint64_t b) {
    on_cpu::require(b >> 62 == 1, "an operand of wgmma is not in the 128-byte swizzle");
    std::array<const uint32_t*, 4> of_lane;
    for (int lane = 0; lane < 4; lane++) of_lane[lane] = on_cpu::take_from(threadIdx.x % 32 / 4 * 4 + lane, a);
    on_cpu::started[on_cpu::thread_of_cluster()].push_back([&sum, of_lane, b, thread = threadIdx.x % 128] {
        float row[2][16], column[16];
        for (int at = 0; at < 16; at++) {
            for (int i = 0; i < 2; i++) row[i][at] = to_float(uint16_t(of_lane[at % 8 / 2][at / 8 * 2 + i] >> at % 2 * 16));
        }
        for (int j = 0; j < 16; j++) {
            for (int e = 0; e < 2; e++) {
                on_cpu::read_column(column, b, 8 * j + thread % 4 * 2 + e);
                for (int i = 0; i < 2; i++) sum[4 * j + 2 * i + e] += on_cpu::dot(row[i], column);
            }
        }
    });
}
