// From when each role was busy to how long they were busy together. Host code.
#pragma once
#include <array>
#include <map>
#include <vector>

constexpr int ROLES = 3;

struct Span {
    unsigned long long begin, end;
};

// Time by the set of roles that were busy, bit r for role r: [0] is when none was, between the first begin and the last end.
inline std::array<unsigned long long, 1 << ROLES> time_by_set(const std::array<std::vector<Span>, ROLES>& busy) {
    std::map<unsigned long long, std::array<int, ROLES>> changes;  // how many more spans of each role run from then on
    for (int role = 0; role < ROLES; role++) {
        for (const Span& span : busy[role]) {
            changes[span.begin][role]++;
            changes[span.end][role]--;
        }
    }
    std::array<unsigned long long, 1 << ROLES> time{};
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
