// The activation that the sides of warp_spec_pingpong apply before they round: GELU by the error function, as a transformer's MLP has it.
#pragma once

struct Gelu {
    __device__ static float of(float x) { return 0.5f * x * (1 + erff(0.70710678f * x)); }
};
