#!/usr/bin/env python3
"""Counts the results of a test run and lists skips by reason.

usage: summarize.py RESULTS_DIR... [--max-skips N]

Reads what GoogleTest, lit (lit.xml) and ctest (ctest.xml) wrote into RESULTS_DIR
as XML; of several folders the sum is told. A ctest test that wrote no finer results counts as one test. The
last line is "N passed, N failed, N skipped". Exit code 1 when a test failed,
when a folder holds no test that passed, or when more than N were skipped.
"""
import argparse
import collections
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def read_googletest(path, tally):
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            name = f'{suite.get("name")}.{case.get("name")}'
            skipped = case.find("skipped")
            if case.find("failure") is not None:
                tally["failed"].append(name)
            elif skipped is not None or case.get("result") == "skipped":
                # GoogleTest puts "file:line" on a line of its own before the reason.
                text = skipped.get("message", "") if skipped is not None else ""
                lines = [line for line in text.splitlines() if line.strip()]
                reason = lines[-1].strip() if lines else "no reason given"
                tally["skipped"].append((name, reason))
            elif case.get("status") == "run":
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


def read_results(folder):
    """What the tests of one folder did: lists by outcome."""
    tally = collections.defaultdict(list)
    detailed = set()
    for path in sorted(folder.glob("*.xml")):
        if path.name not in ("lit.xml", "ctest.xml"):
            read_googletest(path, tally)
            detailed.add(path.stem)
    lit = folder / "lit.xml"
    if lit.exists():
        read_lit(lit, tally)
        detailed.add("lit")
    ctest = folder / "ctest.xml"
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
    if not tally["passed"]:
        tally["failed"].append(f"{folder}: holds no test that passed")
    return tally


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path, nargs="+")
    parser.add_argument("--max-skips", type=int)
    arguments = parser.parse_args()

    tally = collections.defaultdict(list)
    for folder in arguments.results:
        for outcome, tests in read_results(folder).items():
            tally[outcome] += tests

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
    return 1 if failed or too_many else 0


if __name__ == "__main__":
    sys.exit(main())
