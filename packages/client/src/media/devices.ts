import type { Unsubscribe } from '../types.ts'
import { type MediaEnvironment, MediaError, type MediaErrorCode, type MediaKind } from './types.ts'

export const kinds = ['audio', 'video'] as const

const codes: Record<string, MediaErrorCode> = {
  NotAllowedError: 'NOT_ALLOWED',
  SecurityError: 'NOT_ALLOWED',
  NotFoundError: 'NOT_FOUND',
  OverconstrainedError: 'NOT_FOUND',
  NotReadableError: 'IN_USE',
  AbortError: 'IN_USE',
  TypeError: 'NOT_SUPPORTED',
  NotSupportedError: 'NOT_SUPPORTED',
}

export function mediaError(error: unknown, what: string): MediaError {
  if (error instanceof MediaError) return error
  const name = String((error as Error | undefined)?.name)
  return new MediaError(codes[name] ?? 'FAILED', `${what}: ${name}`, error)
}

export function assertOpen(isOpen: boolean): void {
  if (!isOpen) throw new MediaError('CLOSED', 'The media of this call is closed')
}

export function isStream(media: MediaStream | MediaStreamConstraints): media is MediaStream {
  return 'getTracks' in media
}

export function isTrack(wish: unknown): wish is MediaStreamTrack {
  return 'readyState' in Object(wish)
}

/** The kinds that will be sent, before any device is open. */
export function kindsOf(media: MediaStream | MediaStreamConstraints): MediaKind[] {
  if (isStream(media)) return kinds.filter((kind) => media.getTracks().some((track) => track.kind === kind))
  return kinds.filter((kind) => media[kind])
}

export function browserEnvironment(): MediaEnvironment {
  const { RTCPeerConnection, MediaStream, navigator } = globalThis
  const { mediaDevices, permissions } = navigator ?? {}
  return { RTCPeerConnection, MediaStream, mediaDevices, permissions }
}

/** Undefined where the browser does not tell, as Firefox long did not of cameras. */
function permissionFor({ permissions }: MediaEnvironment, kind: MediaKind): Promise<PermissionStatus | undefined> {
  const name = (kind === 'audio' ? 'microphone' : 'camera') as PermissionName
  return Promise.resolve(permissions?.query({ name })).catch(() => undefined)
}

/** In their order. */
export function permissionsFor(environment: MediaEnvironment, of: readonly MediaKind[]) {
  return Promise.all(of.map(async (kind) => (await permissionFor(environment, kind))?.state))
}

export interface Opened {
  tracks: MediaStreamTrack[]
  errors: Partial<Record<MediaKind, MediaError>>
}

/**
 * Microphone and camera with one prompt, or those of them that are there: a person without a camera still has sound. A
 * prompt that was refused is not shown a second time, and a device that is no longer wanted is not requested.
 */
export async function openDevices(
  environment: MediaEnvironment,
  wish: MediaStreamConstraints,
  isWanted: (kind: MediaKind) => boolean,
): Promise<Opened> {
  const wanted = kindsOf(wish).filter(isWanted)
  if (wanted.length === 0) return { tracks: [], errors: {} }
  try {
    if (!environment.mediaDevices) throw new MediaError('NOT_SUPPORTED', 'No mediaDevices without https')
    return { tracks: (await environment.mediaDevices.getUserMedia(wish)).getTracks(), errors: {} }
  } catch (cause) {
    const error = mediaError(cause, 'getUserMedia')
    const all: Opened = { tracks: [], errors: Object.fromEntries(wanted.map((kind) => [kind, error])) }
    if (wanted.length === 1 || error.code === 'NOT_SUPPORTED') return all
    const states = await permissionsFor(environment, wanted)
    for (const [i, kind] of wanted.entries()) {
      // If the other one was denied before, there was no prompt at all.
      const isOpen = states[i] === 'granted' || (states[i] === 'prompt' && states.includes('denied'))
      if (error.code === 'NOT_ALLOWED' && !isOpen) continue
      const one = await openDevices(environment, { [kind]: wish[kind] }, isWanted)
      all.tracks.push(...one.tracks)
      if (one.tracks.length > 0) delete all.errors[kind]
      else Object.assign(all.errors, one.errors)
    }
    return all
  }
}

export async function devicesOf({ mediaDevices }: MediaEnvironment): Promise<readonly MediaDeviceInfo[]> {
  return (await mediaDevices?.enumerateDevices()) ?? []
}

export function removeTracks(stream: MediaStream, isOld: (track: MediaStreamTrack) => boolean): void {
  for (const track of stream.getTracks()) if (isOld(track)) stream.removeTrack(track)
}

/** Tells when a device came or went, and when the user allowed or denied one. */
export function watchDevices(environment: MediaEnvironment, changed: () => void): Unsubscribe {
  const watching = new AbortController()
  const listen = (target: EventTarget | undefined, event: string) =>
    target?.addEventListener?.(event, changed, { signal: watching.signal })
  listen(environment.mediaDevices, 'devicechange')
  for (const kind of kinds) void permissionFor(environment, kind).then((status) => listen(status, 'change'))
  return () => watching.abort()
}
