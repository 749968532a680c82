// What two warpgroups did at the same time, from the stamps of shared_turns.cuh: as text, as JSON and as a Chrome trace. Host code.
#pragma once
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "shared_turns.cuh"

// A phase lasts from its point to the next one. In the last phase a warpgroup is in no step: it starts, or ends, a tile of queries.
constexpr int WARPGROUPS = 2, PHASES = POINTS, OUTSIDE = ROUNDED;
constexpr const char* NAMES[PHASES] = {"wait for turn", "issue scores",  "wait for values", "issue values", "wait for scores",
                                       "softmax",       "wait for keys", "wait for sums",   "round",        "outside"};
constexpr Point SOFTMAX = SCORED;

// Products of scores are issued and have not ended: the warpgroup waits for their end, so that is seen at once.
constexpr bool computes_scores(int phase) { return phase >= TAKEN && phase < SCORED; }
// Products of either kind are issued, and nobody has seen their end. Those of values may have ended under the softmax.
constexpr bool may_multiply(int phase) { return phase >= TAKEN && phase < SUMMED; }

struct Stamps {
    std::vector<unsigned long long> all;  // [blocks][WARPGROUPS][most][POINTS]; 0 where nothing was stamped
    int blocks, most;
    const unsigned long long* step(int block, int warpgroup, int i) const {
        return all.data() + ((size_t(block) * WARPGROUPS + warpgroup) * most + i) * POINTS;
    }
    bool has(int block, int warpgroup, int i) const { return step(block, warpgroup, i)[WANTED] > 0; }
};

// [phase of warpgroup 0][phase of warpgroup 1]
template <typename T>
using Together = std::array<std::array<T, PHASES>, PHASES>;

// The time that a block's warpgroups spent in each pair of phases, from the first stamp to the last.
inline Together<unsigned long long> time_together(const Stamps& stamps, int block) {
    struct Change {
        unsigned long long at;
        int warpgroup, phase;
    };
    std::vector<Change> changes;
    for (int warpgroup = 0; warpgroup < WARPGROUPS; warpgroup++) {
        for (int i = 0; i < stamps.most; i++) {
            if (!stamps.has(block, warpgroup, i)) continue;
            for (int point = 0; point < POINTS; point++) changes.push_back({stamps.step(block, warpgroup, i)[point], warpgroup, point});
        }
    }
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
    Together<unsigned long long> time{};
    int now[WARPGROUPS] = {OUTSIDE, OUTSIDE};
    for (size_t i = 0; i < changes.size(); i++) {
        if (i) time[now[0]][now[1]] += changes[i].at - changes[i - 1].at;
        now[changes[i].warpgroup] = changes[i].phase;
    }
    return time;
}

// One launch: shares of all blocks' time, and the time per step of a warpgroup, all else included.
struct Shares {
    Together<double> together;
    double step_ns;
};

inline Shares shares_of(const Stamps& stamps) {
    Together<double> time{};
    double all = 0, steps = 0;
    for (int block = 0; block < stamps.blocks; block++) {
        const auto of_block = time_together(stamps, block);
        for (int a = 0; a < PHASES; a++) {
            for (int b = 0; b < PHASES; b++) {
                time[a][b] += of_block[a][b];
                all += of_block[a][b];
            }
        }
        for (int i = 0; i < stamps.most; i++) steps += stamps.has(block, 0, i);
    }
    for (auto& row : time) {
        for (double& share : row) share /= all;
    }
    return {time, all / steps};
}

// Of the time in which `of(phase)` is true for a warpgroup, the share in which `under(phase)` is true for the other. Both warpgroups count.
template <typename Of, typename Under>
double share_under(const Together<double>& together, Of of, Under under) {
    double all = 0, found = 0;
    for (int a = 0; a < PHASES; a++) {
        for (int b = 0; b < PHASES; b++) {
            all += together[a][b] * (of(a) + of(b));
            found += together[a][b] * ((of(a) && under(b)) + (of(b) && under(a)));
        }
    }
    return all ? found / all : 0;
}

// The smallest difference between two stamps, which is the resolution of the clock. 0 if all are equal.
inline unsigned long long clock_step(const Stamps& stamps) {
    std::vector<unsigned long long> sorted;
    std::copy_if(stamps.all.begin(), stamps.all.end(), std::back_inserter(sorted), [](unsigned long long stamp) { return stamp > 0; });
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    unsigned long long least = 0;
    for (size_t i = 1; i < sorted.size(); i++) least = i == 1 ? sorted[1] - sorted[0] : std::min(least, sorted[i] - sorted[i - 1]);
    return least;
}

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

// Chrome's trace viewers read `traceEvents` and show the other keys as metadata; common/python/report/turn_trace.py reads all.
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

// The mean of `of(launch)` over the launches, with minimum and maximum: `53.21 [52.90 to 53.40]`.
template <typename Of>
std::string mean_text(const Report& report, Of of) {
    double sum = 0, least = of(report.launches[0]), most = least;
    for (const Launch& launch : report.launches) {
        const double value = of(launch);
        sum += value;
        least = std::min(least, value);
        most = std::max(most, value);
    }
    char text[100];
    snprintf(text, sizeof text, "%6.2f [%.2f to %.2f]", sum / report.launches.size(), least, most);
    return text;
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
