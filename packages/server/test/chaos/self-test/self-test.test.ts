import { expect, test } from 'bun:test'
import { selfTest } from './self-test.ts'

/**
 * recording.jsonl is of `npm run chaos -- --nodes 1 --users 4 --duration 9 --seed 16`, before there were long relays;
 * recording-nodes.jsonl of `npm run chaos -- --nodes 3 --users 3 --duration 10 --seed 144`, before several had endpoints;
 * recording-embedded.jsonl of `npm run chaos -- --nodes 1 --store sqlite --users 4 --duration 11 --seed 6`.
 */
for (const { name, problem } of selfTest()) {
  test(`the checker of chaos runs: ${name}`, () => {
    expect(problem).toBeUndefined()
  })
}
