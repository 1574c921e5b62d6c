"""Default draws bring every feature of programs together with every event: what is not drawn is not seen."""

from __future__ import annotations

from trunnion.testing.coverage import EVENTS, count_cells, table
from trunnion.testing.strategies import PROGRAM_CAPABILITIES

_LEAST = 1
_ALONE = "a feature beside which there is no tensor at all is rare: X1 to X3, V1, V8 and N1 draw calls without tensors"
_UNREACHED = {
    **{(str(feature), "no tensor"): _ALONE for feature in PROGRAM_CAPABILITIES},
    (
        "access_policy_window",
        "captured",
    ): "G1 and G2 draw no window, which may forbid a capture: P1 to P3 do",
}
"""What these draws need not reach, and why."""


def test_each_feature_meets_each_event(harnesses):
    """One test counts them all, for the backend that declares the most: processes would each draw them anew."""
    counted = count_cells(max(harnesses.values(), key=lambda one: len(one.capabilities)))
    features = {feature for feature, _ in counted}
    assert features == {"any program", *map(str, PROGRAM_CAPABILITIES)}
    missing = [
        (feature, event)
        for event in EVENTS
        for feature in sorted(features)
        if counted[feature, event] < _LEAST and (feature, event) not in _UNREACHED
    ]
    assert not missing, table(counted)
