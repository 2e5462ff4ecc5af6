import type { Unsubscribe, WebSocketConstructor } from './types.ts'

/** Signals from the page: the network came or went, or somebody looks at it again. */
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
  visit(): Visit
}

/** How this page came to be, for what the one before it left in the storage. */
export type Visit =
  /** The same tab was loaded again, or followed a link within its origin, a moment ago. */
  | 'reload'
  /** The page was left, and is here again; or there are no pages where this runs. */
  | 'return'
  /** The page that has the session did not leave, and may still be open: this page got a copy of its storage. */
  | 'copy'

/** A page that goes leaves in sessionStorage when it went; a duplicated tab copies that. */
const mark = 'ringwire.left'
/** From one page of a tab to the next one, in ms: a tab that is opened again later is not a reload. */
const reloadMs = 10_000
let visited: Visit | undefined

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
    uuid,
    listen,
    // Once: it takes the mark away.
    visit: () => (visited ??= readVisit()),
  }
}

/**
 * By the mark, and by what the browser says of the navigation. A duplicated tab has no mark, because the original page
 * was not left. A tab that was closed and is opened again is not a reload, nor is one that was left and gone back to.
 */
function readVisit(): Visit {
  if (!globalThis.document) return 'return'
  try {
    const left = sessionStorage.getItem(mark)
    const forget = () => sessionStorage.removeItem(mark)
    forget()
    addEventListener('pagehide', () => sessionStorage.setItem(mark, `${Date.now()}`))
    addEventListener('pageshow', forget)
    if (!left) return 'copy'
    const [navigation] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[]
    // A link within the application goes on with the call; an address that was typed has no referrer.
    const isLink = navigation?.type === 'navigate' && document.referrer.startsWith(`${location.origin}/`)
    const goesOn = isLink || navigation?.type === 'reload'
    return goesOn && performance.timeOrigin - +left < reloadMs ? 'reload' : 'return'
  } catch {
    // A page that may keep nothing.
    return 'copy'
  }
}

/**
 * If there is no randomUUID (React Native, pages without TLS) it only has to differ from the caller's own other calls
 * [INV3, UUID1].
 */
function uuid(): string {
  const random = globalThis.crypto?.randomUUID?.()
  return (
    random ?? 'xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx'.replace(/x/g, () => Math.floor(Math.random() * 16).toString(16))
  )
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
