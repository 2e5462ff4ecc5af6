import type { ServerWebSocket } from 'bun'
import type { SessionClaims } from '../../src/auth/tokens.ts'
import type { Admission } from '../../src/signaling/admission.ts'
import type { Line, LineEvents } from '../chaos/phone.ts'
import type { Random } from '../fuzz/random.ts'
import { admitted, type SimulatedNode } from './node.ts'
import type { Scheduler } from './scheduler.ts'

/** The longest that a message travels one way, in ms. */
const latencyMs = 30
/** This many of a hundred lost networks end without a word to the other end. */
const halfOpenPercent = 30

/** Connects a phone with a node: in order, at its own pace, until somebody or something ends it. */
export function connect(
  scheduler: Scheduler,
  random: Random,
  node: SimulatedNode | undefined,
  claims: SessionClaims,
  query: string,
  events: LineEvents,
): Line {
  const { host, sockets } = node ?? {}
  /** Whether each end believes in it. */
  let isOpenHere = true
  let isOpenThere = false
  let [lastUp, lastDown] = [0, 0]
  const draw = () => 0.1 + (random.int(1_000) / 1_000) * latencyMs
  const up = (what: () => void) => {
    lastUp = Math.max(lastUp, scheduler.now + draw()) + 1e-6
    host?.after(lastUp - scheduler.now, what)
  }
  const down = (what: () => void) => {
    lastDown = Math.max(lastDown, scheduler.now + draw()) + 1e-6
    scheduler.after(lastDown - scheduler.now, () => isOpenHere && what())
  }
  const endHere = (code: number) => {
    isOpenHere = false
    events.onClosed(code)
  }
  const endThere = (code: number, reason: string) => {
    if (!isOpenThere) return
    isOpenThere = false
    void sockets?.close?.(socket, code, reason)
  }
  const socket = {
    data: admitted(claims, query),
    send(text: string) {
      if (isOpenThere) down(() => events.onText(text))
      return text.length
    },
    ping(data: Uint8Array) {
      const counter = Buffer.from(data)
      if (isOpenThere) down(() => up(() => isOpenThere && sockets?.pong?.(socket, counter)))
      return data.byteLength
    },
    cork: <T>(send: () => T) => send(),
    close(code: number, reason: string) {
      if (!isOpenThere) return
      down(() => endHere(code))
      endThere(code, reason)
    },
    getBufferedAmount: () => 0,
  } as unknown as ServerWebSocket<Admission>

  up(() => {
    if (node?.isReady !== true) {
      down(() => endHere(1006))
      return
    }
    isOpenThere = true
    void sockets?.open?.(socket)
  })
  // A process that dies says so to its connections, and so does the machine of a process that is not there any more.
  if (host === undefined || !host.isAlive) scheduler.after(draw(), () => isOpenHere && endHere(1006))
  else host.onDeath(() => down(() => endHere(1006)))
  return {
    send(text) {
      if (isOpenHere) up(() => isOpenThere && void sockets?.message?.(socket, text))
    },
    reset() {
      if (!isOpenHere) return
      endHere(1006)
      if (random.int(100) >= halfOpenPercent) up(() => endThere(1006, ''))
    },
  }
}
