import { type CallMedia, type CallMediaOptions, createCallMedia } from '@ringwire/client/media'
import { carryMutes, type Transfers } from '@ringwire/client/transfer'
import type { Call, CallClient } from '@ringwire/client/types'
import { idle, type LineStates, type OverState, phaseOf } from './line-state.ts'

interface LineCallOptions {
  readonly media?: CallMediaOptions | undefined
  readonly transfers?: Transfers | undefined
}

/** The user has to answer it. */
export const rings = (call: Call): boolean => phaseOf(call) === 'incoming'

/** The calls that the page is in, from the moment when it takes them to their end, and their media. */
export function createLineCall(
  client: CallClient,
  line: LineStates,
  open: (media: CallMedia, withCamera: boolean) => Promise<void>,
  options: () => LineCallOptions,
) {
  const { get, change } = line
  const watched = new WeakSet<Call>()
  const two = createTwoCalls(client, line, watch, join, options)

  /** The first call is over. One that waits takes its place: it rings, or goes on if it was on hold. */
  function over(call: Call, state: OverState): void {
    const { since, other } = get()
    if (other && !rings(other.call)) {
      change({ ...other, other: undefined })
      if (!two.isLeaving(other.call)) void other.call.resume()
      return
    }
    change({ ...idle, phase: 'over', ended: { call, state, since, endedAt: Date.now() } })
    const next = client.calls.find(rings)
    if (next) ring(next)
  }

  /** A first call that was put on hold for it comes back. */
  function refused(): void {
    get().media?.close()
    change({ media: undefined })
    if (!get().other) return
    two.exchange()
    void get().call?.resume()
  }

  function watch(call: Call): void {
    if (watched.has(call)) return
    watched.add(call)
    call.on('state', (now) => {
      if (get().other?.call === call) change(now.name === 'over' ? { other: undefined } : {})
      else if (get().call !== call) return
      else if (now.name === 'over') over(call, now)
      else {
        change({})
        // Accept was refused: the dialog is back, and nothing may be open behind it.
        if (get().phase === 'incoming') refused()
      }
    })
  }

  function hold(call: Call): void {
    watch(call)
    change({ ...idle, call })
  }

  function ring(call: Call): void {
    hold(call)
    void call.alerting()
  }

  /** Media closes itself when the call is over. `answer`: whether the user who accepts wants the camera. */
  function join(call: Call, answer?: boolean, before?: CallMedia): void {
    const media = createCallMedia(call, options().media)
    if (before) carryMutes(before, media)
    media.on('state', () => noteConnected(line, media))
    change({ media })
    const isVideo = call.callType === 'video'
    if (isVideo && answer !== undefined) void media.setMuted('video', !answer)
    // A camera that was off before the page was loaded again stays closed.
    void open(media, isVideo && !media.state.muted.video)
  }

  return {
    ...two,
    ring,
    join,
    /** It is the page's own, or was answered before. */
    take(call: Call): void {
      hold(call)
      join(call)
    },
  }
}

/** A peer without devices sends nothing. The call is live as soon as both sides are connected. */
function noteConnected({ get, change }: LineStates, media: CallMedia): void {
  const { name } = media.state
  if (name !== 'flowing' && name !== 'silent') return
  const { other, since } = get()
  if (get().media === media && since === undefined) change({ since: Date.now() })
  else if (other?.media === media && other.since === undefined) change({ other: { ...other, since: Date.now() } })
}

/** The first call and the other one. */
function createTwoCalls(
  client: CallClient,
  { get, change }: LineStates,
  watch: (call: Call) => void,
  join: (call: Call, answer?: boolean, before?: CallMedia) => void,
  options: () => LineCallOptions,
) {
  /** Calls that end together, because their other sides go on with each other. */
  let leaving: readonly Call[] = []

  /** The two calls change their places. */
  function exchange(): void {
    const { call, media, since, other } = get()
    if (call && other) change({ ...other, other: { call, media, since } })
  }

  /** The older call comes first. */
  function both(): readonly Call[] {
    const { call, other } = get()
    return client.calls.filter((each) => each === call || each === other?.call)
  }

  return {
    isLeaving: (call: Call): boolean => leaving.includes(call),
    exchange,
    /** It rings during the first call, or was there before the page was loaded again. */
    wait(call: Call): void {
      watch(call)
      change({ other: { call, media: undefined, since: undefined } })
      if (rings(call)) {
        void call.alerting()
        return
      }
      exchange()
      join(call)
      // Of two calls one is on hold, and stays behind.
      if (call.held) exchange()
      else void get().other?.call.hold()
    },
    /** The first of the two goes on as the second one, in its place. */
    move(from: Call, call: Call): void {
      const isOther = get().other?.call === from
      if (!isOther && get().call !== from) return
      if (isOther) exchange()
      const before = get().media
      watch(call)
      change({ call, media: undefined, since: undefined })
      join(call, undefined, before)
      if (isOther) exchange()
    },
    /** The user made the newer one of two calls to ask before a transfer: the page makes no other call during a call. */
    isConsulted(): boolean {
      const [, newer] = both()
      const { transfers } = options()
      // A call that was transferred here may be outgoing, too.
      return transfers !== undefined && newer?.direction === 'outgoing' && !transfers.origin(newer)
    },
    /** Of two answered calls. The older one is transferred: what it is about stays. */
    connectBoth(): void {
      const pair = both()
      const [first, to] = pair
      if (!first || !to || pair.some(({ state }) => state.name === 'ringing')) return
      leaving = pair
      options()
        .transfers?.transfer(first, { to })
        .catch(() => {
          leaving = []
          // The other one ended meanwhile, and this one stayed on hold because it was to end, too.
          const { call: left, other: still } = get()
          if (left?.held && !still && pair.includes(left)) void left.resume()
        })
    },
  }
}

export type LineCall = ReturnType<typeof createLineCall>
