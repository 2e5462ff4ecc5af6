import { afterAll, beforeAll, expect, test } from 'bun:test'
import { acceptedCall, candidate, connectPair, someone } from '@ringwire/testkit/flows'
import { encodeFrame, opcodes } from '@ringwire/testkit/frames'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'

/** Many slow readers together [WS7]: each alone is within its own limit. */

let service: Service
beforeAll(async () => {
  service = await new Service({
    RINGWIRE_MAX_UNSENT_MIB: '1',
    RINGWIRE_WS_RATE: 'off',
    RINGWIRE_PING_INTERVAL_MS: '1000',
    RINGWIRE_PONG_TIMEOUT_MS: '120000',
  }).start()
})
afterAll(() => service.dispose())

test('[WS7] sockets that together leave too much unread are closed with 4008, and relays go on meanwhile', async () => {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  const deaf = await Promise.all(
    Array.from({ length: 8 }, () => service.connect({ user_id: someone('deaf'), role: 'agent' })),
  )
  for (const client of deaf) client.pause()
  // The answers to 16 KiB of pings each, in turn, so that all of them owe about as much. A reply has the service look.
  const frames = Array.from({ length: 128 }, () => encodeFrame(opcodes.ping, Buffer.alloc(123)))
  const pings = Buffer.concat([...frames, encodeFrame(opcodes.text, '{"event":"test.unknown"}')])
  const closed = () => service.log.split('\n').filter((line) => line.includes('slow readers owe too much together'))
  let sent = 0
  // Far more than the kernel holds for eight sockets.
  for (; closed().length === 0 && sent < 2_000; sent++) {
    for (const client of deaf) client.raw(pings)
    pair.caller.send('webrtc.ice_candidate', candidate(callUuid, sent))
    const { data } = await pair.callee.next('webrtc.ice_candidate')
    expect(data.candidate.candidate).toBe(`candidate:${sent}`)
    await pair.caller.settle()
  }
  await until('one is closed', async () => closed().length > 0)
  const lines = closed()
  expect(lines.length).toBeGreaterThan(0)
  for (const line of lines) expect(JSON.parse(line)).toMatchObject({ closeCode: 4008, message: 'socket closed' })
  // Those that owed less stay.
  expect(lines.length).toBeLessThan(deaf.length)
}, 120_000)
