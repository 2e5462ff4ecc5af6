import { useEffect } from 'react'
import { rings } from './line-call.ts'
import { useCallUi } from './provider.tsx'
import { playMelody, ringback, ringing, waiting } from './tones.ts'

export interface CallTonesProps {
  /** The address of a sound of your own that is repeated while a call rings here. */
  ringing?: string | undefined
  /** The same for a call that rings at the other side. */
  ringback?: string | undefined
}

/** A phone that lies on a table shall be felt; most other devices have nothing to shake. In ms: on, off, on. */
const shake = [200, 100, 200]

/**
 * The tones while a call rings, here or at the other side, and two beeps for one that comes during another call; it shows
 * nothing. A phone that can vibrate does so for a call that rings here.
 */
export function CallTones(own: CallTonesProps) {
  const { phase, other } = useCallUi()
  const waits = phase !== 'incoming' && other !== undefined && rings(other.call)
  const kind = phase === 'incoming' ? 'ringing' : phase === 'calling' ? 'ringback' : undefined
  const url = kind && own[kind]
  useEffect(() => {
    if (!kind) return
    return url ? playFile(url) : playMelody(kind === 'ringing' ? ringing : ringback)
  }, [kind, url])
  useEffect(() => (waits ? playMelody(waiting) : undefined), [waits])
  useEffect(() => {
    if (kind !== 'ringing') return
    const vibrate = () => void navigator.vibrate?.(shake)
    vibrate()
    const timer = setInterval(vibrate, ringing.everyMs)
    return () => {
      clearInterval(timer)
      navigator.vibrate?.(0)
    }
  }, [kind])
  return null
}

/** Until the returned function is called. If the browser refuses, it begins with the first click or key. */
function playFile(url: string): () => void {
  const audio = new Audio(url)
  const over = new AbortController()
  const play = () => void audio.play().catch(() => {})
  audio.loop = true
  for (const gesture of ['click', 'keydown']) {
    window.addEventListener(gesture, play, { signal: over.signal, capture: true })
  }
  play()
  return () => {
    over.abort()
    audio.pause()
  }
}
