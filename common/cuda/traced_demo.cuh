// What demos that trace a kernel share: a launch's time, where and when it ran, and the file that they write. Host code.
#pragma once
#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>

// The driver's version, by NVML, which comes with it; empty without.
inline std::string driver() {
    char version[80] = "";
    void* nvml = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
    if (!nvml) return version;
    const auto init = reinterpret_cast<int (*)()>(dlsym(nvml, "nvmlInit_v2"));
    const auto get = reinterpret_cast<int (*)(char*, unsigned)>(dlsym(nvml, "nvmlSystemGetDriverVersion"));
    return init && get && !init() && !get(version, sizeof version) ? version : "";
}

inline std::string today() {
    char text[11];
    const time_t now = time(nullptr);
    strftime(text, sizeof text, "%Y-%m-%d", gmtime(&now));
    return text;
}

// What a call took by the GPU's events, in us, behind one like it, which warms up and hides how long the host takes.
template <typename Call, typename Event>
auto time_call(Call call, Event begin, Event end, double* us) {
    float ms = 0;
    auto error = call();
    if (!error) error = cudaEventRecord(begin);
    if (!error) error = call();
    if (!error) error = cudaEventRecord(end);
    if (!error) error = cudaEventSynchronize(end);
    if (!error) error = cudaEventElapsedTime(&ms, begin, end);
    *us = 1000.0 * ms;
    return error;
}

// The mean of `of(launch)` over the launches, with minimum and maximum: `53.21 [52.90 to 53.40]`.
template <typename Report, typename Of>
std::string mean_text(const Report& report, Of of) {
    double sum = 0, least = of(report.launches[0]), most = least;
    for (const auto& launch : report.launches) {
        const double value = of(launch);
        sum += value;
        least = std::min(least, value);
        most = std::max(most, value);
    }
    char text[100];
    snprintf(text, sizeof text, "%6.2f [%.2f to %.2f]", sum / report.launches.size(), least, most);
    return text;
}

// Writes the report as JSON; returns the demo's exit code.
template <typename Report>
int save(const char* path, const Report& report) {
    FILE* file = report.driver.empty() ? nullptr : fopen(path, "w");
    if (!file) {
        fprintf(stderr, "%s: %s; expected a file to write\n", path,
                report.driver.empty() ? "NVML told no driver version" : strerror(errno));
        return 1;
    }
    write_json(file, report);
    return fclose(file) ? 1 : 0;
}
