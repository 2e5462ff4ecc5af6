import type { ClientEventName } from '@ringwire/protocol/client-events'
import type { Environment } from './environment.ts'
import { RingwireError } from './error.ts'
import { type ReplyData, utf8Length } from './wire.ts'

export type Reply =
  | { readonly ok: true; readonly data: ReplyData }
  | { readonly ok: false; readonly error: RingwireError }

export interface Request {
  readonly event: ClientEventName
  /** Read each time that it is sent. */
  readonly data: object
  /** Repeats the request after its time, however often it fails: hanging up has to arrive at last, and mute flags. */
  readonly insistent?: boolean
  /** Is called with the reply even where the promise did not wait for it. */
  readonly onReply?: (reply: Reply) => unknown
  /** Is called when the promise no longer waits, and it may have taken effect or still do so. */
  readonly onUnsure?: () => unknown
}

interface Entry extends Request {
  readonly id: string
  readonly resolve: (data: ReplyData) => void
  readonly reject: (error: RingwireError) => void
  readonly deadline: number
  /** Its number in this session [EXT4]; 0 until it is sent. */
  n: number
  waits: boolean
  /** It may have taken effect: it was sent in a session that is gone, or the service failed while at it. */
  unsure: boolean
  /** Nobody wants it any more; the application heard that it may take effect. */
  takenBack: boolean
  tries: number
  endTimer: () => void
  /** The invite was refused for its token, which was renewed. */
  renewed: boolean
  /** Cancels the pause before the next try; undefined while there is none. */
  endPause: (() => void) | undefined
}

/** A message above it would close the socket with 1009, again after each resume [WS6]. */
const maxMessageBytes = 64 * 1024
/** How often a request is repeated that may succeed later unchanged. */
const maxTries = 5
/** The longest pause before that, where the service names none. */
const maxPauseMs = 15_000

export interface RequestsOptions {
  readonly timeoutMs: number
  /** Is called only while there is an authenticated socket. */
  transmit(text: string): void
  /** Shows the service a new token; resolved when that is done, or failed. */
  renewToken(): Promise<void>
}

/** The numbers of a session [EXT4]: every request has one from when it is sent, and stays until its reply has come. */
function createLedger(transmit: (text: string) => void) {
  const entries = new Map<string, Entry>()
  let lastN = 0
  let replied = 0
  let isOpen = false

  function send({ event, id, n, data }: Entry): void {
    transmit(JSON.stringify({ event, request_id: id, n, data }))
  }

  const all = () => [...entries.values()]

  function add(entry: Entry): void {
    entries.set(entry.id, entry)
    flush()
  }

  /** Sends what was not sent in this session yet. */
  function flush(): void {
    for (const entry of entries.values()) {
      if (!isOpen) return
      if (entry.n > 0 || entry.endPause) continue
      entry.n = ++lastN
      send(entry)
    }
  }

  return {
    all,
    add,
    /** The same one at the end of the line, unless it was removed. */
    addAgain(entry: Entry): void {
      if (entries.delete(entry.id)) add(entry)
    },
    remove(entry: Entry): void {
      entries.delete(entry.id)
      entry.endTimer()
      entry.endPause?.()
    },
    /** The one that a reply is for; one that was not sent in this session has none. */
    answered(id: string): Entry | undefined {
      const entry = entries.get(id)
      if (!entry?.n) return
      replied = Math.max(replied, entry.n)
      return entry
    },
    pause(): void {
      isOpen = false
    },
    /** The session goes on: what did not take effect is sent again, unchanged and in order. */
    resumed(handled: number): void {
      isOpen = true
      const again = all()
        .filter(({ n }) => n > handled)
        .sort((a, b) => a.n - b.n)
      // A page that was loaded again does not know the requests of the page before it, nor their answers.
      if (lastN < handled) replied = handled
      // After a crash the service may know less than it answered: a number that was used is not used again.
      lastN = Math.max(lastN, handled, ...again.map(({ n }) => n))
      for (const entry of again) send(entry)
      flush()
    },
    /** The numbers begin again at 1. Gives what is there. */
    restart(): readonly Entry[] {
      lastN = replied = 0
      return all()
    },
    /** The n of the last reply seen [RES1]. */
    replied: (): number => replied,
  }
}

type Ledger = ReturnType<typeof createLedger>

/** Nobody will hear what became of it. */
function giveUp(ledger: Ledger, entry: Entry, words: string, details: object = {}): void {
  const code = entry.n > 0 || entry.unsure ? 'UNKNOWN_OUTCOME' : 'CONNECTION_CLOSED'
  ledger.remove(entry)
  entry.reject(new RingwireError(code, `${entry.event}: ${words}`, details))
}

/** Repeats a request that failed, if it may succeed unchanged. */
function askAgain(
  entry: Entry,
  { code, retryable, retryAfterMs }: RingwireError,
  env: Environment,
  ledger: Ledger,
  renewToken: () => Promise<void>,
): boolean {
  function askNow(): void {
    entry.endPause = undefined
    ledger.addAgain(entry)
  }

  if (entry.takenBack) return false
  if (code === 'AUTH_TOKEN_INVALID' && entry.event === 'call.invite' && !entry.renewed && entry.waits) {
    // No call begins after the token's end [WS5]: a timer was late, or the device slept.
    entry.renewed = true
    entry.n = 0
    entry.endPause = () => {}
    void renewToken().then(askNow)
    return true
  }
  if (!retryable || entry.event === 'auth.refresh') return false
  const pause = retryAfterMs || Math.min(maxPauseMs, 200 * 2 ** entry.tries * (1 + env.random()))
  const isWorthIt = ++entry.tries <= maxTries && env.now() + pause < entry.deadline
  if (!entry.insistent && !isWorthIt) return false
  entry.n = 0
  entry.endPause = env.after(pause, askNow)
  return true
}

/** The state of every request at first. */
const unsent = { n: 0, tries: 0, waits: true, unsure: false, takenBack: false, renewed: false, endPause: undefined }

/** Asks the service. A request is sent again until its reply has come, as far as a repeat of it does no harm. */
export function createRequests(env: Environment, { timeoutMs, transmit, renewToken }: RequestsOptions) {
  const ledger = createLedger(transmit)
  const prefix = env.uuid().slice(0, 8)
  let count = 0

  function timedOut(entry: Entry): void {
    entry.waits = false
    entry.reject(new RingwireError('TIMEOUT', `${entry.event} had no reply in ${timeoutMs} ms.`, { retryable: true }))
    // A number that was given stays: the service counts on every one of them.
    if (entry.n === 0 && !entry.insistent) ledger.remove(entry)
    if (entry.n > 0 || entry.unsure) entry.onUnsure?.()
  }

  return {
    ...ledger,
    ask(request: Request): Promise<ReplyData> {
      const promise = new Promise<ReplyData>((resolve, reject) => {
        if (utf8Length(JSON.stringify(request.data)) > maxMessageBytes - 256) {
          reject(new RingwireError('PAYLOAD_TOO_LARGE', `${request.event} is over 64 KiB.`))
          return
        }
        const endTimer = env.after(timeoutMs, () => timedOut(entry))
        const ends = { resolve, reject, endTimer, deadline: env.now() + timeoutMs }
        const entry: Entry = { ...request, ...unsent, id: `${prefix}-${++count}`, ...ends }
        ledger.add(entry)
      })
      promise.catch(() => {})
      return promise
    },

    /** A reply came; one that nobody waits for belongs to the page that was here before. */
    answer(id: string, reply: Reply): void {
      const entry = ledger.answered(id)
      if (!entry) return
      if (!reply.ok) entry.unsure ||= mayHaveTakenEffect(reply.error)
      if (!reply.ok && askAgain(entry, reply.error, env, ledger, renewToken)) return
      ledger.remove(entry)
      entry.onReply?.(reply)
      if (reply.ok) entry.resolve(reply.data)
      else {
        entry.reject(reply.error)
        if (entry.unsure && !entry.takenBack) entry.onUnsure?.()
      }
    },
    withdraw: (callUuid: string, event?: 'call.invite' | 'call.accept') => withdraw(ledger, callUuid, event),
    restarted: () => restart(ledger),

    /** For good. */
    close(cause?: unknown): void {
      ledger.pause()
      for (const entry of ledger.restart()) giveUp(ledger, entry, 'the client is closed.', { cause })
    },
    /** Whether requests of this kind wait for a reply. */
    isAsked: (event: ClientEventName): boolean => ledger.all().some((it) => it.event === event && it.n > 0),
  }
}

/** The request about a call is not asked again. True if it had no effect for sure: it then never happened. */
function withdraw(ledger: Ledger, callUuid: string, event: 'call.invite' | 'call.accept' = 'call.invite'): boolean {
  const asked = ledger
    .all()
    .filter((it) => it.event === event && 'call_uuid' in it.data && it.data.call_uuid === callUuid)
  for (const entry of asked) {
    entry.takenBack = true
    // One that was sent in this session keeps its number until its reply comes [EXT4].
    if (entry.n === 0) giveUp(ledger, entry, 'taken back.')
  }
  return asked.length > 0 && asked.every(({ n, unsure }) => n === 0 && !unsure)
}

/**
 * A new session: `n` begins again at 1. Nobody knows which relays arrived, and media starts anew; verbs and invites are
 * repeated by `resumed(0)`, as a repeat of them does no harm [INV3, END1].
 */
function restart(ledger: Ledger): void {
  for (const entry of ledger.restart()) {
    const isRepeatable = entry.event.startsWith('call.')
    if (isRepeatable && !entry.takenBack && (entry.waits || entry.insistent)) {
      entry.unsure ||= entry.n > 0
      entry.n = 0
    } else giveUp(ledger, entry, 'the session was lost.', { retryable: entry.n === 0 })
  }
}

/** A limit refuses before anything is done; any other failure of the service may have come after it. */
function mayHaveTakenEffect({ retryable, code }: RingwireError): boolean {
  return retryable && code !== 'RATE_LIMITED'
}

export type Requests = Omit<
  ReturnType<typeof createRequests>,
  'all' | 'add' | 'addAgain' | 'answered' | 'remove' | 'restart'
>
