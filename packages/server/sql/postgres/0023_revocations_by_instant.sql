-- What no token can be of any more is found by its instant, and removed in steps.
CREATE INDEX revocations_by_instant ON revocations (not_before);
