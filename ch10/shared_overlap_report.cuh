// Reports several traced launches, as text and as JSON for common/python/report/role_trace.py. Host code.
#pragma once
#include <cstdio>
#include <string>

#include "common/cuda/traced_demo.cuh"
#include "shared_overlap.cuh"

// A launch with time stamps, and one without, one after the other.
struct Launch {
    double traced_us, untraced_us;
    Shares shares;
};

struct Report {
    std::string gpu, driver, date, side;
    int m, n, k, blocks, stages;
    unsigned long long clock_step_ns;
    std::vector<Launch> launches;
};

inline std::string set_name(int set) {
    std::string name;
    for (int role = 0; role < ROLES; role++) {
        if (set >> role & 1) name += (name.empty() ? "" : " ") + std::string(NAMES[role]);
    }
    return name.empty() ? "nobody" : name;
}

inline void write_json(FILE* to, const Report& report) {
    fprintf(to, "{\n  \"schema_version\": 1,\n  \"gpu\": \"%s\",\n  \"driver\": \"%s\",\n  \"date\": \"%s\",\n  \"side\": \"%s\",\n",
            report.gpu.c_str(), report.driver.c_str(), report.date.c_str(), report.side.c_str());
    fprintf(to, "  \"shape\": {\"m\": %d, \"n\": %d, \"k\": %d},\n  \"blocks\": %d,\n  \"stages\": %d,\n  \"clock_step_ns\": %llu,\n",
            report.m, report.n, report.k, report.blocks, report.stages, report.clock_step_ns);
    fprintf(to, "  \"launches\": [");
    for (const Launch& launch : report.launches) {
        fprintf(to, "%s\n    {\"traced_us\": %.3f, \"untraced_us\": %.3f, \"loads_in_flight\": %.4f, \"step_ns\": %.2f, \"shares\": {",
                &launch == report.launches.data() ? "" : ",", launch.traced_us, launch.untraced_us, launch.shares.loads_in_flight,
                launch.shares.step_ns);
        for (int set = 0; set < 1 << ROLES; set++) {
            fprintf(to, "%s\"%s\": %.7f", set ? ", " : "", set_name(set).c_str(), launch.shares.of_time[set]);
        }
        fprintf(to, "}}");
    }
    fprintf(to, "\n  ]\n}\n");
}

// Percent of the blocks' time in which `is_one` is true for the set of busy roles.
template <typename IsOne>
std::string percent_text(const Report& report, IsOne is_one) {
    return mean_text(report, [&](const Launch& launch) {
        double share = 0;
        for (int set = 0; set < 1 << ROLES; set++) share += is_one(set) ? launch.shares.of_time[set] : 0;
        return 100 * share;
    });
}

inline void print(FILE* to, const Report& report) {
    fprintf(to, "%s on %s, driver %s, %s: %d x %d x %d, %d blocks, means of %zu launches [least to most]\n\n", report.side.c_str(),
            report.gpu.c_str(), report.driver.c_str(), report.date.c_str(), report.m, report.n, report.k, report.blocks,
            report.launches.size());
    constexpr int WAITS = 1 << WAIT;
    fprintf(to, "%% of a block's time         %% of a block's time, and who multiplies waits for a stage\n");
    for (int busy = 0; busy < WAITS; busy++) {
        const std::string all = percent_text(report, [&](int set) { return (set & ~WAITS) == busy; });
        fprintf(to, "%-28s %-28s %s\n", all.c_str(), percent_text(report, [&](int set) { return set == (busy | WAITS); }).c_str(),
                set_name(busy).c_str());
    }
    for (int role = 0; role < ROLES; role++) {
        fprintf(to, "%-28s %-28s %s in all\n", percent_text(report, [&](int set) { return set >> role & 1; }).c_str(), "", NAMES[role]);
    }
    fprintf(to, "\nloads in flight, of %d stages: %s\n", report.stages,
            mean_text(report, [](const Launch& launch) { return launch.shares.loads_in_flight; }).c_str());
    fprintf(to, "ns a step: %s, where the clock moves on by %llu\n",
            mean_text(report, [](const Launch& launch) { return launch.shares.step_ns; }).c_str(), report.clock_step_ns);
    fprintf(to, "us with stamps: %s\n", mean_text(report, [](const Launch& launch) { return launch.traced_us; }).c_str());
    fprintf(to, "us without:     %s\n", mean_text(report, [](const Launch& launch) { return launch.untraced_us; }).c_str());
}
