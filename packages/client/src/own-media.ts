import type { CallMediaFlags } from './types.ts'

export interface OwnMediaPort {
  send(data: object): Promise<void>
  callUuid(): string
  /** This side holds the call from now on, or does not any more. */
  changed(held: boolean): void
}

const nothing: CallMediaFlags = { audio: false, video: false, screen: false }

/** This side's flags about its media [MEDIA1], and whether it has put the call on hold [HOLD1]. */
export function createOwnMedia({ send, callUuid, changed }: OwnMediaPort) {
  let flags = nothing
  let held = false
  /** One object for all requests: each says what is true when it goes out. */
  let said: (CallMediaFlags & { held?: boolean }) | undefined
  let last = Promise.resolve()

  function say({ audio, video, screen }: CallMediaFlags): Promise<void> {
    // A side that never held the call does not speak of it.
    const isWorthIt = held || said?.held !== undefined
    said = Object.assign(said ?? {}, { call_uuid: callUuid(), audio, video, screen }, isWorthIt && { held })
    last = send(said)
    return last
  }

  return {
    tell(now: CallMediaFlags): Promise<void> {
      flags = now
      return say(now)
    },
    /** Says the same again: it may have been lost. */
    repeat(): void {
      if (said) void say(said)
    },
    setHeld(next: boolean): Promise<void> {
      if (held === next) return Promise.resolve()
      held = next
      const before = last
      changed(next)
      // The media part has said by now what it sends. Without one, a side that holds sends nothing.
      return last === before ? say(next ? nothing : flags) : last
    },
  }
}

export type OwnMedia = ReturnType<typeof createOwnMedia>
