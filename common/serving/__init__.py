"""Mechanisms of a serving engine without a policy: caches, a step, samplers. What a pair is about stays in the pair."""
