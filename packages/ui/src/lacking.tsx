import type { CallMediaState, MediaErrorCode, MediaKind } from '@ringwire/client/media'
import { useWords } from './provider.tsx'
import type { Words } from './words.ts'

export interface LackingProps {
  /** Of this kind only. */
  of?: 'audio' | 'video' | undefined
  errors: CallMediaState['errors']
  retry(): Promise<void>
}

/** The words about a microphone or a camera that could not be opened. */
export function whyNot(words: Words, kind: MediaKind, code: MediaErrorCode): string {
  const name = kind === 'audio' ? words.microphone : words.camera
  if (code === 'NOT_ALLOWED') return words.notAllowed(name)
  if (code === 'NOT_FOUND') return words.notFound(name)
  return code === 'IN_USE' ? words.inUse(name) : words.unavailable(name)
}

/** Why a microphone or a camera is not there, and the way to ask again. */
export function Lacking({ of, errors, retry }: LackingProps) {
  const words = useWords()
  const lines = (['audio', 'video'] as const).flatMap((kind) => {
    const code = errors[kind]
    return !code || (of && of !== kind) ? [] : whyNot(words, kind, code)
  })
  if (lines.length === 0) return null
  return (
    <div className="rw-lacking" data-testid="device-errors">
      {lines.map((line) => (
        <p key={line}>{line}</p>
      ))}
      <button type="button" className="rw-button" data-testid="retry-devices" onClick={() => void retry()}>
        {words.tryAgain}
      </button>
    </div>
  )
}
