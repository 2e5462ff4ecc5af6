import type { CallMediaFlags } from '../types.ts'
import type { CallMediaState, MediaKind } from './types.ts'

export interface TellingOptions {
  readonly state: () => Pick<CallMediaState, 'muted' | 'sharing' | 'held'>
  /** There is a device of the kind, also one that is muted. */
  readonly has: (kind: MediaKind) => boolean
  readonly hasMusic: boolean
  readonly send: (flags: CallMediaFlags) => void
}

/** The peer sees at once who is muted, or has no camera, or shows a screen [MEDIA1], and who holds the call [HOLD1]. */
export function createTelling({ state, has, hasMusic, send }: TellingOptions) {
  /** The last flags that the peer got. */
  let told: string | undefined

  return (): void => {
    const { muted, sharing, held } = state()
    const sends = (kind: MediaKind) => !held && !muted[kind] && has(kind)
    const audio = held ? hasMusic : sends('audio')
    const flags = { audio, video: sends('video'), screen: !held && sharing }
    const before = told
    told = `${Object.values(flags)},${held}`
    if (told !== before) send(flags)
  }
}
