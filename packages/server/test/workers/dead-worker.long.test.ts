import { describe, expect, test } from 'bun:test'
import { candidate, connectPair, someone } from '@ringwire/testkit/flows'
import { inTime, until } from '@ringwire/testkit/patience'
import { about, answeredCall, type ExtendedPair } from '../support/extended-flows.ts'
import { workersOf } from '../support/workers.ts'
import { baseOn, count, extendedOn, linesOf, machinesFor } from './machine.ts'

const { startWorkers } = machinesFor()

const isListening = ({ message }: { message: string }) => message === 'listening'

describe('a worker that dies', () => {
  test('its clients come back and their calls go on; it is started again', async () => {
    const service = await startWorkers()
    try {
      const [callerId, calleeId] = [someone('caller'), someone('callee')]
      const pair: ExtendedPair = {
        callerId,
        calleeId,
        caller: await extendedOn('m-2', service, callerId, 'customer'),
        callee: await extendedOn('m-3', service, calleeId, 'agent'),
      }
      const base = await connectPair(service)
      const callUuid = await answeredCall(pair)
      const before = workersOf(service.pid)
      process.kill(before.get(2) ?? 0, 'SIGKILL')
      await pair.caller.closed
      await pair.caller.next('auth.ok', ({ data }) => data.active_calls.length === 1)
      for (let n = 0; n < 10; n++) {
        await pair.caller.request('webrtc.ice_candidate', candidate(callUuid, n))
        await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate === `candidate:${n}`)
        await pair.callee.request('webrtc.ice_candidate', candidate(callUuid, 100 + n))
        await pair.caller.next(
          'webrtc.ice_candidate',
          ({ data }) => data.candidate.candidate === `candidate:${100 + n}`,
        )
      }
      await until('it listens again', () => linesOf(service).filter(isListening).length === count + 1)
      const after = workersOf(service.pid)
      expect([...after.keys()].sort()).toEqual([1, 2, 3])
      expect([after.get(1), after.get(3)]).toEqual([before.get(1), before.get(3)])
      expect(after.get(2)).not.toBe(before.get(2))
      const died = linesOf(service).filter(({ message }) => message.startsWith('a worker ended'))
      expect(died).toMatchObject([{ nodeId: 'm', node: 'm-2', reason: 'SIGKILL', level: 'error' }])
      // It takes connections again, and clients of it reach those of others.
      await baseOn('m-2', service, someone('late'), 'customer')
      await pair.callee.request('call.end', { call_uuid: callUuid })
      await pair.caller.next('call.ended', about(callUuid))
      pair.caller.stop()
      pair.callee.stop()
      await Promise.all([base.caller.die(), base.callee.die()])
      expect(await service.terminate()).toBe(0)
    } finally {
      await service.dispose()
    }
  }, 240_000)

  test('one that hangs is ended and started again; the others are not', async () => {
    const service = await startWorkers({ RINGWIRE_WORKERS: '2' })
    try {
      const before = workersOf(service.pid)
      process.kill(before.get(2) ?? 0, 'SIGSTOP')
      await until('it listens again', () => linesOf(service).filter(isListening).length === 3, 30_000)
      const after = workersOf(service.pid)
      expect(after.get(1)).toBe(before.get(1) ?? 0)
      expect(after.get(2)).not.toBe(before.get(2))
      expect(linesOf(service).filter(({ level }) => level === 'error')).toMatchObject([
        { node: 'm-2', message: 'a worker gives no sign of life: it is ended' },
        { node: 'm-2', reason: 'SIGKILL' },
      ])
      expect(await service.terminate()).toBe(0)
    } finally {
      await service.dispose()
    }
  }, 240_000)

  test('a process that stood still with its workers judges none of them', async () => {
    const service = await startWorkers({ RINGWIRE_WORKERS: '2' })
    try {
      const before = workersOf(service.pid)
      const all = [service.pid, ...before.values()]
      for (const pid of all) process.kill(pid, 'SIGSTOP')
      // Longer than any of them may be silent.
      await Bun.sleep(11_000)
      for (const pid of all) process.kill(pid, 'SIGCONT')
      const client = await service.connect({ user_id: someone('late'), role: 'customer' })
      // The next looks at them.
      await Bun.sleep(2_500)
      expect(workersOf(service.pid)).toEqual(before)
      client.close()
      expect(await service.terminate()).toBe(0)
    } finally {
      await service.dispose()
    }
  }, 240_000)

  test(
    'again and again: the pauses grow, and the log says so',
    () =>
      // One that lived for 10 s begins anew.
      inTime(async () => {
        const service = await startWorkers({ RINGWIRE_WORKERS: '2' })
        try {
          for (let died = 1; died <= 3; died++) {
            process.kill(workersOf(service.pid).get(2) ?? 0, 'SIGKILL')
            await until('it listens again', () => linesOf(service).filter(isListening).length === 2 + died)
          }
          const died = linesOf(service).filter(({ message }) => message.startsWith('a worker ended'))
          expect(died.map(({ attempt, durationMs }) => [attempt, durationMs])).toEqual([
            [1, 250],
            [2, 500],
            [3, 1000],
          ])
          expect(await service.terminate()).toBe(0)
        } finally {
          await service.dispose()
        }
      }),
    240_000,
  )
})
