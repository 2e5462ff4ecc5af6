import type { MediaKind } from '@ringwire/client/media/types'

const key = 'ringwire-demo-muted'

export type Muted = Readonly<Record<MediaKind, boolean>>

/** What this tab has muted in this call. A reload keeps it; every other call begins with nothing muted. */
export function loadMuted(callUuid: string): Muted {
  const stored = sessionStorage.getItem(key)
  const kept = stored === null ? undefined : (JSON.parse(stored) as { callUuid: string; muted: Muted })
  return kept?.callUuid === callUuid ? kept.muted : { audio: false, video: false }
}

export function keepMuted(callUuid: string, muted: Muted): void {
  sessionStorage.setItem(key, JSON.stringify({ callUuid, muted }))
}
