import { afterAll, beforeAll, expect, test } from 'bun:test'
import { acceptedCall, candidate, connectPair, someone } from '@ringwire/testkit/flows'
import { isLong } from '@ringwire/testkit/long'
import { productKey, Service } from '@ringwire/testkit/service'
import { openFiles, residentBytes } from '../support/process.ts'
import { Findings } from './findings.ts'
import { fuzzMessages } from './messages.ts'
import { Random } from './random.ts'
import { fuzzFrames } from './raw-frames.ts'
import { fuzzRest } from './rest-requests.ts'

/** FUZZ_SEED repeats a run; FUZZ_SCALE makes a longer one. */
const seed = Number(process.env.FUZZ_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])
const scale = Number(process.env.FUZZ_SCALE ?? (isLong ? 0.4 : 0.1))

/** Of each kind in one part of the run; there are three parts, and the first only warms up. */
const inPart = { rest: 20_000, messages: 40_000, frames: 10_000 } as const
const workers = { rest: 16, messages: 12, frames: 8 } as const
const mebibyte = 1024 * 1024

const service = new Service({
  RINGWIRE_WS_RATE: 'off',
  RINGWIRE_RING_TIMEOUT_MS: '1000',
  RINGWIRE_PEER_LOST_MS: '1000',
  RINGWIRE_CALLER_LOST_MS: '1000',
  RINGWIRE_MAX_SOCKETS: '100',
  RINGWIRE_RESUME_WINDOW_MS: '500',
})
beforeAll(async () => {
  await service.start()
})
afterAll(() => service.dispose())

/** One part of the run: everything at once, on many connections. Gives the largest memory of the service in it. */
async function runPart(random: Random, findings: Findings): Promise<number> {
  const token = await service.token({ user_id: someone('fuzzer'), role: 'agent' })
  const target = { url: service.url, keyId: productKey.id, secret: productKey.secret, token }
  const share = (kind: keyof typeof inPart) => Math.ceil((inPart[kind] * scale) / workers[kind])
  const work: Promise<void>[] = []
  for (let i = 0; i < workers.rest; i++) work.push(fuzzRest(target, random.fork(), share('rest'), findings))
  for (let i = 0; i < workers.frames; i++) {
    work.push(fuzzFrames(service.url, token, random.fork(), share('frames'), findings))
  }
  for (let i = 0; i < workers.messages; i++) {
    const calleeId = someone('callee')
    const pair = {
      url: service.url,
      callerToken: await service.token({ user_id: someone('caller'), role: 'customer' }),
      calleeToken: await service.token({ user_id: calleeId, role: 'agent' }),
      calleeId,
      extended: i % 2 === 1,
    }
    work.push(fuzzMessages(pair, random.fork(), share('messages'), findings))
  }
  let most = 0
  const sampler = setInterval(() => {
    most = Math.max(most, residentBytes(service.pid))
  }, 50)
  await Promise.all(work)
  clearInterval(sampler)
  return Math.max(most, residentBytes(service.pid))
}

test('[HTTP1] [ENV1] [LOG1] requests, messages and frames that nobody would send', async () => {
  console.log(`FUZZ_SEED=${seed}`)
  const random = new Random(seed)
  const findings = new Findings()
  const { pid } = service
  const began = performance.now()

  await runPart(random, findings)
  const files = openFiles(pid)
  const first = await runPart(random, findings)
  const second = await runPart(random, findings)

  console.log(`${findings.sent} in ${((performance.now() - began) / 1000).toFixed(1)} s: ${findings.summary()}`)
  console.log(`memory: ${[first, second].map((bytes) => (bytes / mebibyte).toFixed(1)).join(' MiB, then ')} MiB`)
  expect(findings.unexpected).toEqual([])
  expect(findings.sent).toBeGreaterThanOrEqual(100_000 * Math.min(1, scale))

  // The same process, and it still knows what a call is.
  expect(service.pid).toBe(pid)
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  pair.caller.send('webrtc.ice_candidate', candidate(callUuid, 1))
  await pair.callee.next('webrtc.ice_candidate')
  pair.callee.send('call.connected', { call_uuid: callUuid })
  pair.callee.send('call.end', { call_uuid: callUuid })
  expect((await pair.caller.next('call.ended')).data).toMatchObject({ call_uuid: callUuid, reason: 'hangup' })
  const token = await service.token({ user_id: pair.callerId, role: 'customer' })
  expect((await service.history(token)).data[0]).toMatchObject({ call_uuid: callUuid, status: 'ended' })

  expect(second).toBeLessThan(first * 1.15 + 24 * mebibyte)
  expect(openFiles(pid)).toBeLessThan(files + 64)
  const lines = service.log.trim().split('\n')
  for (const line of lines) expect(() => JSON.parse(line), line.slice(0, 300)).not.toThrow()
  expect(lines.filter((line) => line.includes('"level":"error"'))).toEqual([])
  expect(await service.terminate()).toBe(0)
}, 240_000)
