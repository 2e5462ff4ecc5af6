/** The numbers of an extended client: what it sent under which n, and what it must know when it resumes [EXT4, RES1]. */
import type { Heard } from '../heard.ts'
import type { Judge } from '../verdicts.ts'

/** What went to the client, or was proven by a pong to have arrived. */
interface Mark {
  readonly seq: number
  readonly n: number
}

interface Session {
  readonly id: string
  epoch: string
  /** Texts by n, in the order of their first sending. */
  readonly sent: Map<number, string>
  readonly ids: Map<string, number>
  told: Mark
  proven: Mark
  /** What has to be sent again, in this order, before anything new. */
  again: readonly number[]
  /** The client had another session before. */
  readonly isLater: boolean
}

export interface Numbers {
  onUpgrade(target: string): void
  onUp(text: string): void
  onDown(heard: Heard): void
  onPing(payload: string): void
  onPong(payload: string): void
}

export function createNumbers(judge: () => Judge): Numbers {
  let session: Session | undefined
  const pings = new Map<string, Mark>()

  return {
    onUpgrade(target) {
      const query = new URL(target, 'ws://kit').searchParams
      const resume = query.get('resume')
      if (resume === null || session === undefined) return
      const { check } = judge()
      check('RES1', resume === session.id, 'the resume names another session than auth.ok did')
      check('RES1', query.get('epoch') === session.epoch, 'the resume names another epoch than auth.ok did')
      const { proven, told } = session
      for (const name of ['seq', 'n'] as const) {
        const value = Number(query.get(name) ?? Number.NaN)
        const isRight = value >= proven[name] && value <= told[name]
        check('RES1', isRight, `the resume says ${name} ${value}; the client has seen ${proven[name]} to ${told[name]}`)
      }
    },
    onUp: (text) => session !== undefined && lookAtNumber(judge(), session, text),
    onDown(heard) {
      if (heard.event === 'auth.ok') session = opened(session, heard)
      if (session === undefined || heard.event === 'auth.ok') return
      const { seq = session.told.seq, request_id } = heard
      const n = heard.seq === undefined ? (session.ids.get(request_id ?? '') ?? 0) : 0
      session.told = { seq: Math.max(session.told.seq, seq), n: Math.max(session.told.n, n) }
    },
    onPing: (payload) => void (session !== undefined && pings.set(payload, session.told)),
    onPong(payload) {
      const mark = pings.get(payload)
      pings.delete(payload)
      if (mark !== undefined && session !== undefined && mark.seq <= session.told.seq) session.proven = mark
    },
  }
}

function opened(before: Session | undefined, { data }: Heard): Session | undefined {
  if (typeof data?.session_id !== 'string') return undefined
  if (before !== undefined && data.recovered === true && before.id === data.session_id) {
    before.epoch = data.epoch
    before.again = [...before.sent.keys()].filter((n) => n > data.handled).sort((a, b) => a - b)
    return before
  }
  const none = { seq: 0, n: 0 }
  const maps = { sent: new Map<number, string>(), ids: new Map<string, number>() }
  const isLater = before !== undefined
  return { id: data.session_id, epoch: data.epoch, ...maps, told: none, proven: none, again: [], isLater }
}

function lookAtNumber({ check }: Judge, session: Session, text: string): void {
  const { n, request_id } = JSON.parse(text) as { n?: unknown; request_id?: string }
  // Without one it has no place in the order.
  if (n === undefined || n === null) return
  if (!check('EXT4', Number.isSafeInteger(n) && Number(n) > 0, `n is ${n}`)) return
  const number = Number(n)
  const { sent, again } = session
  const before = sent.get(number)
  if (before !== undefined) {
    check('EXT4', Bun.deepEquals(JSON.parse(before), JSON.parse(text)), `n ${n} was sent again with another content`)
    check('EXT4', again.length === 0 || again[0] === number, `n ${n} was sent again before n ${again[0]}`)
    session.again = again.filter((it) => it !== number)
    return
  }
  const next = Math.max(0, ...sent.keys()) + 1
  check('EXT4', again.length === 0, `n ${n} is new, and n ${again[0]} was not sent again before it`)
  // A new session counts anew [RES2].
  check(sent.size === 0 && session.isLater ? 'RES2' : 'EXT4', number === next, `n is ${n}, and has to be ${next}`)
  sent.set(number, text)
  if (typeof request_id === 'string') session.ids.set(request_id, number)
}
