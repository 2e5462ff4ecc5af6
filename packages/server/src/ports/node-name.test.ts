import { expect, test } from 'bun:test'
import {
  beginAfter,
  connectionName,
  isReplacedBy,
  isWorkerOf,
  newNodeName,
  nodeOfWorker,
  workerId,
} from './node-name.ts'

test('a node that starts again is another run, and the one before is over', () => {
  const [first, second] = [newNodeName('calls-0', 1_000), newNodeName('calls-0', 2_000)]
  expect(isReplacedBy(first, second)).toBe(true)
  expect(isReplacedBy(second, first)).toBe(false)
  expect(isReplacedBy(first, first)).toBe(false)
  for (const other of ['calls-1', 'calls-00', 'calls-0-1', 'calls']) {
    expect(isReplacedBy(first, newNodeName(other, 2_000))).toBe(false)
    expect(isReplacedBy(newNodeName(other, 1_000), second)).toBe(false)
  }
})

test('a run is later than the one before it, also if the clock was put back between them', () => {
  const first = newNodeName('calls-0', beginAfter(null, 1_000_000))
  for (const now of [0, 999_999, 1_000_000, 1_000_000.4]) {
    const second = newNodeName('calls-0', beginAfter(first, now))
    expect(isReplacedBy(first, second)).toBe(true)
    expect(isReplacedBy(second, first)).toBe(false)
  }
  expect(beginAfter(first, 1_000_002.4)).toBe(1_000_002)
})

test('whose worker a node is', () => {
  expect(nodeOfWorker(workerId('calls-0', 12), 12)).toBe('calls-0')
  expect(isWorkerOf(newNodeName('calls-0-12', 1_000), 'calls-0')).toBe(true)
  for (const stranger of ['calls-1', 'calls-1-2', 'calls-0', 'calls-0-1-2', 'calls-0-x', 'other-1']) {
    expect(isWorkerOf(newNodeName(stranger, 1_000), 'calls-0')).toBe(false)
  }
})

test('what the stores show of a connection fits into what they take', () => {
  expect(connectionName()).toBe('ringwire')
  expect(connectionName('calls-1')).toBe('ringwire:calls-1')
  expect(connectionName('two words\n\u00e9')).toBe('ringwire:two_words__')
  expect(connectionName('x'.repeat(200))).toHaveLength(63)
})
