import type { Unsubscribe, WebSocketConstructor } from './types.ts'

/** What the page tells: the network came or went, or somebody looks at it again. */
export type Signal = 'online' | 'offline' | 'visible'

/** All that the client takes from where it runs. Tests give their own. */
export interface Environment {
  /** Ms since the epoch, by a clock that may be wrong and may jump. */
  now(): number
  random(): number
  /** Runs once after `ms`; the answer prevents it. */
  after(ms: number, run: () => void): () => void
  readonly WebSocket: WebSocketConstructor | undefined
  uuid(): string
  listen(run: (signal: Signal) => void): Unsubscribe
  /** Whether no other page that is open has claimed this name; from then on this one has, until it goes. */
  claim(name: string): Promise<boolean>
}

/** A page that goes gives its claims back, but perhaps not before the next one asks. */
const claimPatienceMs = 300

/** The longest timer that setTimeout keeps; a longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1

/** The globals of browsers, Bun, Node and React Native, which has neither window events nor document. */
export function globalEnvironment(webSocket: WebSocketConstructor | undefined): Environment {
  return {
    now: Date.now,
    random: Math.random,
    after(ms, run) {
      const timer = setTimeout(run, Math.min(ms, maxTimerMs))
      return () => clearTimeout(timer)
    },
    // A polyfill may come after the client was made.
    get WebSocket() {
      return webSocket ?? (globalThis.WebSocket as WebSocketConstructor | undefined)
    },
    uuid: () => globalThis.crypto?.randomUUID?.() ?? weakUuid(),
    listen,
    claim,
  }
}

/** By the Web Locks API, where there is one: a tab that was duplicated has a copy of the other's sessionStorage. */
function claim(name: string): Promise<boolean> {
  const locks = globalThis.navigator?.locks as LockManager | undefined
  if (!locks) return Promise.resolve(true)
  return new Promise((resolve) => {
    const patience = new AbortController()
    setTimeout(() => patience.abort(), claimPatienceMs)
    const hold = () => {
      resolve(true)
      return new Promise(() => {})
    }
    locks.request(name, { signal: patience.signal }, hold).catch(() => resolve(false))
  })
}

/** For React Native and pages without TLS: it only has to differ from the caller's own other calls [INV3, UUID1]. */
function weakUuid(): string {
  return 'xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx'.replace(/x/g, () => Math.floor(Math.random() * 16).toString(16))
}

function listen(run: (signal: Signal) => void): Unsubscribe {
  const ends: Unsubscribe[] = []
  const add = (target: Partial<EventTarget> | undefined, event: string, listener: () => void) => {
    target?.addEventListener?.(event, listener)
    ends.push(() => target?.removeEventListener?.(event, listener))
  }
  const page = globalThis.document as Document | undefined
  add(globalThis, 'online', () => run('online'))
  add(globalThis, 'offline', () => run('offline'))
  add(globalThis, 'pageshow', () => run('visible'))
  add(page, 'visibilitychange', () => page?.visibilityState === 'visible' && run('visible'))
  return () => {
    for (const end of ends) end()
  }
}
