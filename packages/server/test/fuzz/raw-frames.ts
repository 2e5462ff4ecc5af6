import { encodeFrame, opcodes } from '@ringwire/testkit/frames'
import type { Findings } from './findings.ts'
import { FuzzSocket } from './fuzz-socket.ts'
import { mutateBytes } from './mutations.ts'
import type { Random } from './random.ts'

const envelope = '{"event":"call.end","request_id":"r","data":{"call_uuid":"00000000-0000-0000-0000-000000000000"}}'

/** Frames of every kind, with whatever options. */
function anyFrame(random: Random): Buffer {
  const opcode = random.chance(0.7) ? random.pick(Object.values(opcodes)) : random.int(16)
  const payload = random.pick<() => Uint8Array | string>([
    () => envelope,
    () => '',
    () => random.bytes(random.int(130)),
    () => Buffer.from([random.int(256), random.int(256)]),
    () => 'x'.repeat(random.pick([125, 126, 65_535, 65_536])),
  ])()
  return encodeFrame(opcode, payload, {
    fin: random.chance(0.8),
    masked: random.chance(0.9),
    rsv: random.chance(0.9) ? 0 : random.int(8),
  })
}

/** A handful of frames on a connection, some of them broken, then the end of our half. */
export async function fuzzFrames(
  url: string,
  token: string,
  random: Random,
  count: number,
  findings: Findings,
): Promise<void> {
  for (let left = count; left > 0; ) {
    const socket = new FuzzSocket(url, token, findings, { mayClose: true })
    await socket.opened
    const frames = Array.from({ length: Math.min(left, 6) }, () => {
      const frame = anyFrame(random)
      return random.chance(0.3) ? mutateBytes(random, frame) : frame
    })
    left -= frames.length
    findings.sent += frames.length
    const bytes = Buffer.concat(frames)
    socket.input = bytes
    // Sometimes in two pieces, so that a frame is cut.
    const cut = random.chance(0.5) ? bytes.length : random.int(bytes.length + 1)
    socket.frame(bytes.subarray(0, cut))
    if (cut < bytes.length) socket.frame(bytes.subarray(cut))
    socket.end()
    await socket.closed
  }
}
