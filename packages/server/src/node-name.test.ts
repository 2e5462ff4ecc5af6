import { expect, test } from 'bun:test'
import { isSameNode, isWorkerOf, newNodeName, nodeOfWorker, workerId } from './node-name.ts'

test('a worker that starts again is the same node in another run', () => {
  const [one, again, other] = [1, 1, 2].map((worker) => newNodeName(workerId('calls-0', worker)))
  expect(one).not.toBe(again)
  expect(isSameNode(one ?? '', again ?? '')).toBe(true)
  expect(isSameNode(one ?? '', other ?? '')).toBe(false)
})

test('whose worker a node is', () => {
  expect(nodeOfWorker(workerId('calls-0', 12), 12)).toBe('calls-0')
  expect(isWorkerOf(newNodeName('calls-0-12'), 'calls-0')).toBe(true)
  for (const stranger of ['calls-1', 'calls-1-2', 'calls-0', 'calls-0-1-2', 'calls-0-x', 'other-1']) {
    expect(isWorkerOf(newNodeName(stranger), 'calls-0')).toBe(false)
  }
})
