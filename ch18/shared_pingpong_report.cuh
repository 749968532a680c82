// Reports several traced launches, as text and as JSON for common/python/report/pingpong_trace.py. Host code.
#pragma once
#include <cstdio>
#include <string>

#include "common/cuda/traced_demo.cuh"
#include "shared_pingpong_shares.cuh"

// A phase of a warpgroup of one block, in us from the first of those kept.
struct Event {
    int warpgroup, phase;
    double begin_us, us;
};

// All phases of a block's steps from `first` on.
inline std::vector<Event> events_of(const Stamps& stamps, int block, int first, int steps) {
    std::vector<Event> events;
    unsigned long long begin = ~0ull;
    for (int pass = 0; pass < 2; pass++) {
        for (int warpgroup = 0; warpgroup < WARPGROUPS; warpgroup++) {
            for (int i = first; i < std::min(first + steps, stamps.most); i++) {
                if (!stamps.has(block, warpgroup, i)) continue;
                const unsigned long long* at = stamps.step(block, warpgroup, i);
                if (pass == 0) begin = std::min(begin, at[WANTED]);
                for (int phase = 0; pass == 1 && phase < OUTSIDE; phase++) {
                    events.push_back({warpgroup, phase, (at[phase] - begin) / 1e3, (at[phase + 1] - at[phase]) / 1e3});
                }
            }
        }
    }
    return events;
}

// A launch with time stamps, and one without, one after the other.
struct Launch {
    double traced_us, untraced_us;
    Shares shares;
};

struct Report {
    std::string gpu, driver, date, side;
    int heads, queries, keys, blocks;
    unsigned long long clock_step_ns;
    std::vector<Launch> launches;
    int block;                  // whose
    std::vector<Event> events;  // these are, of the last launch
};

// Chrome's trace viewers read `traceEvents` and show the other keys as metadata.
inline void write_json(FILE* to, const Report& report) {
    fprintf(to, "{\n  \"schema_version\": 1,\n  \"gpu\": \"%s\",\n  \"driver\": \"%s\",\n  \"date\": \"%s\",\n  \"side\": \"%s\",\n",
            report.gpu.c_str(), report.driver.c_str(), report.date.c_str(), report.side.c_str());
    fprintf(to, "  \"shape\": {\"heads\": %d, \"queries\": %d, \"keys\": %d},\n  \"blocks\": %d,\n  \"clock_step_ns\": %llu,\n",
            report.heads, report.queries, report.keys, report.blocks, report.clock_step_ns);
    fprintf(to, "  \"phases\": [");
    for (int phase = 0; phase < PHASES; phase++) fprintf(to, "%s\"%s\"", phase ? ", " : "", NAMES[phase]);
    fprintf(to, "],\n  \"launches\": [");
    for (const Launch& launch : report.launches) {
        fprintf(to, "%s\n    {\"traced_us\": %.3f, \"untraced_us\": %.3f, \"step_ns\": %.2f, \"together\": [",
                &launch == report.launches.data() ? "" : ",", launch.traced_us, launch.untraced_us, launch.shares.step_ns);
        for (int a = 0; a < PHASES; a++) {
            for (int b = 0; b < PHASES; b++) {
                fprintf(to, "%s%.7f", b ? ", " : a ? "], [" : "[", launch.shares.together[a][b]);
            }
        }
        fprintf(to, "]]}");
    }
    fprintf(to, "\n  ],\n  \"traceEvents\": [");
    for (const Event& event : report.events) {
        fprintf(to, "%s\n    {\"name\": \"%s\", \"ph\": \"X\", \"pid\": %d, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f}",
                &event == report.events.data() ? "" : ",", NAMES[event.phase], report.block, event.warpgroup, event.begin_us, event.us);
    }
    fprintf(to, "\n  ]\n}\n");
}

inline void print(FILE* to, const Report& report) {
    fprintf(to, "%s on %s, driver %s, %s: %d heads, %d queries, %d keys, %d blocks, means of %zu launches [least to most]\n\n",
            report.side.c_str(), report.gpu.c_str(), report.driver.c_str(), report.date.c_str(), report.heads, report.queries, report.keys,
            report.blocks, report.launches.size());
    const auto softmax = [](int phase) { return phase == SOFTMAX; };
    const auto percent = [&](auto of, auto under) {
        return mean_text(report, [&](const Launch& launch) { return 100 * share_under(launch.shares.together, of, under); });
    };
    fprintf(to, "%% of a softmax's time, and what the other warpgroup does meanwhile\n");
    fprintf(to, "%-28s its products of scores run\n", percent(softmax, computes_scores).c_str());
    fprintf(to, "%-28s its products of scores run, or its products of values may\n", percent(softmax, may_multiply).c_str());
    fprintf(to, "%-28s its softmax runs too\n\n", percent(softmax, softmax).c_str());
    fprintf(to, "%% of a warpgroup's time\n");
    for (int phase = 0; phase < PHASES; phase++) {
        const std::string share = mean_text(report, [&](const Launch& launch) {
            double sum = 0;
            for (int other = 0; other < PHASES; other++) sum += launch.shares.together[phase][other] + launch.shares.together[other][phase];
            return 100 * sum / WARPGROUPS;
        });
        fprintf(to, "%-28s %s\n", share.c_str(), NAMES[phase]);
    }
    fprintf(to, "\nns a step: %s, where the clock moves on by %llu\n",
            mean_text(report, [](const Launch& launch) { return launch.shares.step_ns; }).c_str(), report.clock_step_ns);
    fprintf(to, "us with stamps: %s\n", mean_text(report, [](const Launch& launch) { return launch.traced_us; }).c_str());
    fprintf(to, "us without:     %s\n", mean_text(report, [](const Launch& launch) { return launch.untraced_us; }).c_str());
}
