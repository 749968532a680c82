// Points of a step at which a traced attention kernel reads the clock. The timed kernel is Unstamped: its machine code has no stamps.
#pragma once
#include <cstdint>

// Of a warpgroup and a step of its loop, in order:
//   WANTED   it begins to wait for its turn        SCORED   its scores have been computed
//   TAKEN    it has its turn                       WEIGHED  its softmax is done
//   ISSUED   products of scores are issued         KEYED    the next tile of keys is there
//   FED      the tile of values is there           SUMMED   products of values have ended
//   PASSED   products of values are issued         ROUNDED  its shares are rounded, its sums scaled
enum Point { WANTED, TAKEN, ISSUED, FED, PASSED, SCORED, WEIGHED, KEYED, SUMMED, ROUNDED, POINTS };

struct Unstamped {
    __device__ static void stamp(Point, uint32_t) {}
};
