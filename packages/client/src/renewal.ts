import type { Environment } from './environment.ts'
import type { RingwireError } from './error.ts'
import { pauseBefore } from './reconnect.ts'
import type { Requests } from './requests.ts'
import type { Tokens } from './tokens.ts'
import type { SessionToken } from './types.ts'

/** The client asks for the next token at the earliest when the held one has this much left. */
const leadMs = 60_000
/** The client asks a backend that hands out the same token until it ends at most this often. */
const samePauseMs = 5_000
const retryBounds = { baseMs: 1_000, maxMs: 15_000 }

/** Keeps a live socket going with a new token before the old one runs out [WS5]. */
export function createRenewal(
  env: Environment,
  tokens: Tokens,
  requests: Requests,
  report: (e: RingwireError) => void,
) {
  let run = 0
  let failures = 0
  let endTimer: () => void = () => {}

  const show = ({ token }: SessionToken) => requests.ask({ event: 'auth.refresh', data: { token } })

  /** Not at the same moment as everybody whose token is as old. */
  function schedule(atLeastMs = 0): void {
    const held = tokens.held()
    const left = held ? tokens.msLeft(held) : 0
    endTimer()
    const lead = Math.min(leadMs, left / 5) * (0.5 + env.random() / 2)
    endTimer = env.after(Math.max(atLeastMs, left - lead), renew)
  }

  async function renew(): Promise<void> {
    const mine = run
    try {
      const before = tokens.held()
      const token = await tokens.renewed()
      await show(token)
      if (mine !== run) return
      failures = 0
      schedule(token.expires_at === before?.expires_at ? samePauseMs : 0)
    } catch (error) {
      if (mine !== run) return
      const { code, retryAfterMs } = error as RingwireError
      if (code === 'AUTH_TOKEN_INVALID') tokens.refused()
      report(error as RingwireError)
      endTimer()
      endTimer = env.after(pauseBefore(++failures, { retryAfterMs }, retryBounds, env.random()).ms, renew)
    }
  }

  function stop(): void {
    run++
    endTimer()
  }

  return {
    /** A socket is authenticated with the held token. */
    start(): void {
      stop()
      failures = 0
      const held = tokens.held()
      // Requests that are sent again after a resume are as old as they were: the service has to end with the newest token.
      if (held && requests.isAsked('auth.refresh')) void show(held)
      schedule()
    },
    stop,
    /** Now, because the held one was refused. Resolved also where it fails; it is tried again then. */
    renew,
    /** To show the service the token that it has changes nothing, and has a reply: the cheapest sign of life. */
    probe(): void {
      const last = tokens.last()
      if (last) void show(last)
    },
  }
}

export type Renewal = ReturnType<typeof createRenewal>
