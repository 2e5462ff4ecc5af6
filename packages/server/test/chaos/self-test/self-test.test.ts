import { expect, test } from 'bun:test'
import { selfTest } from './self-test.ts'

/** The recording is of `npm run chaos -- --nodes 1 --users 4 --duration 9 --seed 16 --record recording.jsonl`. */
for (const { name, problem } of selfTest()) {
  test(`the checker of chaos runs: ${name}`, () => {
    expect(problem).toBeUndefined()
  })
}
