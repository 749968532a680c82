// Computes, from the time stamps of shared_trace.cuh, the share of time in which roles were busy together. Host code.
#pragma once
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <vector>

#include "shared_trace.cuh"

// When a role is busy:
//   load      a TMA request of the block is in flight. With a ring of stages that is nearly always, so the number in flight is counted too
//   multiply  from the issue of a K-step's products until its stage is released. Products may end earlier: only a wait observes wgmma's end
//   drain     from the first read of a tile's sums to the end of its last store
//   wait      the multiplying warpgroup waits for a stage; not a role, counted separately
enum Role { LOAD, MULTIPLY, DRAIN, WAIT, ROLES };
constexpr const char* NAMES[ROLES] = {"load", "multiply", "drain", "wait"};
constexpr Point BEGINS[ROLES] = {ASKED, FED, READING, WANTED}, ENDS[ROLES] = {LOADED, CONSUMED, STORED, FED};

struct Span {
    unsigned long long begin, end;
};
using Spans = std::array<std::vector<Span>, ROLES>;

template <typename T>
using BySet = std::array<T, 1 << ROLES>;  // indexed by a set of roles, bit r for role r; [0] is no role

struct Stamps {
    std::vector<unsigned long long> all;  // [POINTS][blocks][most]; 0 where nothing was stamped
    int blocks, most;
    unsigned long long at(Point point, int block, int i) const { return all[(size_t(point) * blocks + block) * most + i]; }
};

// When each role of a block was busy.
inline Spans spans_of(const Stamps& stamps, int block) {
    Spans busy;
    for (int role = 0; role < ROLES; role++) {
        for (int i = 0; i < stamps.most; i++) {
            const unsigned long long end = stamps.at(ENDS[role], block, i);
            if (end) busy[role].push_back({stamps.at(BEGINS[role], block, i), end});
        }
    }
    return busy;
}

// Time by the set of roles that were busy, between the first begin and the last end.
inline BySet<unsigned long long> time_by_set(const Spans& busy) {
    std::map<unsigned long long, std::array<int, ROLES>> changes;  // by how much the number of running spans of each role changes
    for (int role = 0; role < ROLES; role++) {
        for (const Span& span : busy[role]) {
            changes[span.begin][role]++;
            changes[span.end][role]--;
        }
    }
    BySet<unsigned long long> time{};
    std::array<int, ROLES> running{};
    unsigned long long last = changes.empty() ? 0 : changes.begin()->first;
    for (const auto& [now, change] : changes) {
        int set = 0;
        for (int role = 0; role < ROLES; role++) set |= int(running[role] > 0) << role;
        time[set] += now - last;
        last = now;
        for (int role = 0; role < ROLES; role++) running[role] += change[role];
    }
    return time;
}

// One launch: shares of the blocks' time, the mean number of loads in flight, and the time per K-step, waits included.
struct Shares {
    BySet<double> of_time;
    double loads_in_flight, step_ns;
};

inline Shares shares_of(const Stamps& stamps) {
    BySet<double> time{};
    double all = 0, in_flight = 0, steps = 0;
    for (int block = 0; block < stamps.blocks; block++) {
        const Spans busy = spans_of(stamps, block);
        const auto of_block = time_by_set(busy);
        for (int set = 0; set < 1 << ROLES; set++) {
            time[set] += of_block[set];
            all += of_block[set];
        }
        for (const Span& load : busy[LOAD]) in_flight += load.end - load.begin;
        steps += busy[MULTIPLY].size();
    }
    for (double& share : time) share /= all;
    return {time, in_flight / all, all / steps};
}

// The smallest difference between two stamps, which is the resolution of the clock. 0 if all are equal.
inline unsigned long long clock_step(const Stamps& stamps) {
    std::vector<unsigned long long> sorted;
    std::copy_if(stamps.all.begin(), stamps.all.end(), std::back_inserter(sorted), [](unsigned long long stamp) { return stamp > 0; });
    std::sort(sorted.begin(), sorted.end());
    unsigned long long least = 0;
    for (size_t i = 1; i < sorted.size(); i++) {
        const unsigned long long difference = sorted[i] - sorted[i - 1];
        if (difference && (!least || difference < least)) least = difference;
    }
    return least;
}
