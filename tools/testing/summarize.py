#!/usr/bin/env python3
"""Counts the results of a test run and lists skips by reason.

usage: summarize.py RESULTS_DIR [--max-skips N]

Reads what GoogleTest (JSON), lit (xunit XML) and ctest (JUnit XML) wrote into
RESULTS_DIR. A ctest test that wrote no finer results counts as one test. The
last line is "N passed, N failed, N skipped". Exit code 1 when a test failed,
when no test ran, or when more than N were skipped.
"""
import argparse
import collections
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def read_googletest(path, tally):
    report = json.loads(path.read_text())
    for suite in report.get("testsuites", []):
        for case in suite.get("testsuite", []):
            name = f'{suite["name"]}.{case["name"]}'
            if case.get("failures"):
                tally["failed"].append(name)
            elif case.get("result") == "SKIPPED":
                messages = [entry.get("message", "") for entry in case.get("skipped", [])]
                # GoogleTest puts "file:line" on a line of its own before the reason.
                lines = [line for text in messages for line in text.splitlines() if line.strip()]
                reason = lines[-1].strip() if lines else "no reason given"
                tally["skipped"].append((name, reason))
            elif case.get("result") == "COMPLETED":
                tally["passed"].append(name)


def read_lit(path, tally):
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f'{case.get("classname")}.{case.get("name")}'
        if case.find("failure") is not None:
            tally["failed"].append(name)
        elif case.find("skipped") is not None:
            tally["skipped"].append((name, case.find("skipped").get("message") or "no reason given"))
        else:
            tally["passed"].append(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--max-skips", type=int)
    arguments = parser.parse_args()

    tally = collections.defaultdict(list)
    detailed = set()
    for path in sorted(arguments.results.glob("*.json")):
        read_googletest(path, tally)
        detailed.add(path.stem)
    lit = arguments.results / "lit.xml"
    if lit.exists():
        read_lit(lit, tally)
        detailed.add("lit")
    ctest = arguments.results / "ctest.xml"
    if ctest.exists():
        for case in ElementTree.parse(ctest).getroot().iter("testcase"):
            name, outcome = case.get("name"), case.get("status")
            if outcome == "fail":
                # Also catches a program that crashed before it wrote results.
                if name not in detailed or not any(f for f in tally["failed"]):
                    tally["failed"].append(f"ctest {name}")
            elif name not in detailed:
                if outcome == "run":
                    tally["passed"].append(name)
                else:
                    tally["skipped"].append((name, outcome or "not run"))

    reasons = collections.Counter(reason for _, reason in tally["skipped"])
    if reasons:
        print("skipped, by reason:")
        for reason, count in reasons.most_common():
            print(f"  {count:4d}  {reason}")
    for name in tally["failed"]:
        print(f"FAILED: {name}")
    passed, failed, skipped = (len(tally[key]) for key in ("passed", "failed", "skipped"))
    too_many = arguments.max_skips is not None and skipped > arguments.max_skips
    if too_many:
        print(f"too many skips: {skipped}, at most {arguments.max_skips} are allowed")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or too_many or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
