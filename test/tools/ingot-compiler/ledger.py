"""The ledger of an artifact: ledger.py LEDGER WHOLE [PLAIN], all JSON of inspect.

With PLAIN, the same artifact made without an evaluation text: all segments but the
ledger are equal.
"""
import json
import sys

ledger, whole = (json.load(open(path)) for path in sys.argv[1:3])
segments = {s["kind"]: s["xxh3"] for s in whole["segments"]}
if len(sys.argv) > 3:
    plain = {s["kind"]: s["xxh3"] for s in json.load(open(sys.argv[3]))["segments"]}
    assert plain.pop("ledger") != segments.pop("ledger")
    assert plain == segments, (plain, segments)
    sys.exit()

steps = ledger["measurements"]
assert [s["step"] for s in steps] == ["import", "quantize-weights", "quantize-kv"]
first, weights, last = steps
assert first["mean_kl"] == 0 and first["top1_agreement"] == 1
assert 0 < weights["mean_kl"] < last["mean_kl"], "steps are cumulative"
assert weights["artifact_bytes"] < first["artifact_bytes"]
for step in steps:
    assert step["perplexity"] > 1 and step["measure_seconds"] > 0
assert len({s["plan"] for s in steps}) == 3
# The plan that was measured last is the one in the artifact.
assert last["plan"] == segments["plan"], (last["plan"], segments)
assert ledger["evaluation"]["text"] != ledger["calibration"]["text"]
assert ledger["conversions"] and ledger["kv_cache"]
assert whole["ledger"] == ledger
