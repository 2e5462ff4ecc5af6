// Floods over WebSockets.
import { candidate, type Side } from '../candidate.ts'
import { type Client, members, type Pair } from '../dialects/dialect.ts'
import { nextEvent, ringwire } from '../dialects/ringwire.ts'
import { FrameSocket } from '../frame-socket.ts'
import { mintTokens } from '../tokens.ts'
import { Opcode } from '../websocket-frames.ts'
import { openClient } from './clients.ts'
import type { Course, Flood, Worker } from './course.ts'
import type { SocketFloodName, Target } from './job.ts'

/** As many as one participant may have. */
const SOCKETS = 20
/** Within the limits of a socket: a burst at once, then one message each period. */
const BURST = 200
const EVERY_MS = 50
/** Beyond the limits: batches of frames, as long as the service reads them. */
const BATCH = 100
const BATCH_EVERY_MS = 10
const PONG_BYTES = 125
const REFUSED_PAUSE_MS = 20
const CHURNING = 4
const LARGE = 60_000

const request = (event: string, data: unknown) => JSON.stringify({ event, data })
const nobodysCall = { call_uuid: '00000000-0000-4000-8000-000000000000' }
const deep = `{"event":"webrtc.offer","data":{"a":[${'[],'.repeat(21_000)}[]]}}`
const large = request('webrtc.offer', { ...nobodysCall, filler: 'x'.repeat(LARGE) })

/** Another participant for each flood: limits of one that was here before do not count. */
const somebody = (side: Side) => `${crypto.randomUUID()}-${side}`

async function tokenOf(target: Target, id: string): Promise<string> {
  const [token] = await mintTokens(target.port, [id])
  return token!
}

function open({ target }: Course, token: string): Promise<FrameSocket> {
  return FrameSocket.open(target.port, ringwire.upgradeRequest(target.port, '', token))
}

/** Opens a socket again and again, and says on each what `speak` says. */
function onSockets(token: string, speak: (socket: FrameSocket, goesOn: () => boolean) => Promise<number>): Worker {
  return async (course) => {
    while (course.running) {
      const socket = await open(course, token).catch(() => undefined)
      if (socket === undefined) {
        course.refused++
        await Bun.sleep(REFUSED_PAUSE_MS)
        continue
      }
      let isOpen = true
      socket.onFailure = () => {
        isOpen = false
      }
      const sent = await speak(socket, () => isOpen && course.running).catch(() => 0)
      course.sent += sent
      if (!isOpen) course.refused++
      await socket.terminate()
    }
  }
}

/** Writes a frame `count` times whenever the earlier ones have left. */
function pouring(frame: (socket: FrameSocket) => Uint8Array, count: number, everyMs: number) {
  return async (socket: FrameSocket, goesOn: () => boolean): Promise<number> => {
    socket.onText = () => {}
    const one = frame(socket)
    const all = new Uint8Array(one.length * count)
    for (let i = 0; i < count; i++) all.set(one, i * one.length)
    let sent = 0
    while (goesOn()) {
      if (socket.isClear) {
        socket.write(all)
        sent += count
      }
      await Bun.sleep(everyMs)
    }
    return sent
  }
}

const ofOneToken =
  (speak: (socket: FrameSocket, goesOn: () => boolean) => Promise<number>): Flood =>
  async (target) => {
    const token = await tokenOf(target, somebody('caller'))
    return Array.from({ length: SOCKETS }, () => onSockets(token, speak))
  }

/** An answered call of two enemies. */
async function enemies(target: Target): Promise<{ pair: Pair; token: string }> {
  const [callerId, calleeId] = [somebody('caller'), somebody('callee')]
  const [caller, callee] = await mintTokens(target.port, [callerId, calleeId])
  const client = (id: string, token: string) => openClient(ringwire, target.port, id, token)
  const pair: Pair = {
    caller: await client(callerId, caller!),
    callee: await client(calleeId, callee!),
    callUuid: '',
  }
  return { pair, token: callee! }
}

/** The end of a flood is the end of its call. */
async function leave(caller: Client, callUuid: string): Promise<void> {
  caller.socket.send(request('call.end', { call_uuid: callUuid }))
  await Bun.sleep(50)
  await caller.socket.terminate()
}

/** The holder of a place is silent, and nineteen others name its call, with much behind it. */
const queue: Flood = async (target) => {
  const { pair, token } = await enemies(target)
  await ringwire.join(pair)
  pair.callee.socket.answersPings = false
  const name = request('webrtc.ice_candidate', { call_uuid: pair.callUuid, candidate })
  const others = Array.from({ length: SOCKETS - 1 }, () =>
    onSockets(token, async (socket, goesOn) => {
      socket.onText = () => {}
      socket.send(name)
      let sent = 1
      while (goesOn()) {
        if (socket.isClear) {
          socket.send(large)
          sent++
        }
        await Bun.sleep(sent < BURST ? 0 : EVERY_MS)
      }
      return sent
    }),
  )
  const hangUp: Worker = async (course) => {
    while (course.running) await Bun.sleep(EVERY_MS)
    await leave(pair.caller, pair.callUuid)
    await pair.callee.socket.terminate()
  }
  return [...others, hangUp]
}

/** Who is called connects, says that it is busy and is gone, again and again; another of its sessions goes on ringing. */
const busy: Flood = async (target) => {
  const { pair, token } = await enemies(target)
  const { caller, callee } = pair
  caller.socket.send(request('call.invite', { callee_user_id: callee.id, callee_role: 'callee' }))
  const callUuid = String(members((await nextEvent(callee, 'call.ringing')).data).call_uuid)
  const reject = request('call.reject', { call_uuid: callUuid, reason: 'busy' })
  const churning = Array.from({ length: CHURNING }, () =>
    onSockets(token, async (socket) => {
      await nextEvent({ id: callee.id, socket }, 'call.ringing')
      socket.send(reject)
      return 1
    }),
  )
  const hangUp: Worker = async (course) => {
    while (course.running) await Bun.sleep(EVERY_MS)
    await leave(caller, callUuid)
    await callee.socket.terminate()
  }
  return [...churning, hangUp]
}

/** One side of a call connects, speaks and is gone, again and again. */
const reconnects: Flood = async (target) => {
  const { pair, token } = await enemies(target)
  await ringwire.join(pair)
  await pair.callee.socket.terminate()
  const name = request('webrtc.ice_candidate', { call_uuid: pair.callUuid, candidate })
  const churning = Array.from({ length: CHURNING }, () =>
    onSockets(token, async (socket) => {
      await nextEvent({ id: pair.callee.id, socket }, 'auth.ok')
      socket.send(name)
      return 1
    }),
  )
  const hangUp: Worker = async (course) => {
    while (course.running) await Bun.sleep(EVERY_MS)
    await leave(pair.caller, pair.callUuid)
  }
  return [...churning, hangUp]
}

export const floodsOverSockets: Record<SocketFloodName, Flood> = {
  arrays: ofOneToken(pouring((socket) => socket.frame(deep), 1, EVERY_MS)),
  queue,
  messages: ofOneToken(
    pouring(
      (socket) => socket.frame(request('webrtc.ice_candidate', { ...nobodysCall, candidate })),
      BATCH,
      BATCH_EVERY_MS,
    ),
  ),
  pongs: ofOneToken(pouring((socket) => socket.frame('x'.repeat(PONG_BYTES), Opcode.pong), BATCH, BATCH_EVERY_MS)),
  busy,
  reconnects,
}
