/** One note: all times in seconds. */
export interface Note {
  readonly at: number
  readonly hertz: number
  readonly lasts: number
  /** 0 to 1. */
  readonly level: number
}

/** Notes that are played again and again. */
export interface Melody {
  readonly everyMs: number
  readonly notes: readonly Note[]
}

const bell = (at: number, hertz: number): Note[] => [
  { at, hertz, lasts: 0.9, level: 0.16 },
  { at, hertz: hertz * 2.01, lasts: 0.45, level: 0.05 },
]

/** A call that rings here. */
export const ringing: Melody = {
  everyMs: 2400,
  notes: [...bell(0, 587.33), ...bell(0.16, 739.99), ...bell(0.32, 880), ...bell(0.48, 739.99), ...bell(0.64, 880)],
}

/** It rings at the other side: the tone of most European networks. */
export const ringback: Melody = { everyMs: 5000, notes: [{ at: 0, hertz: 425, lasts: 1, level: 0.05 }] }

/** Another call comes: two short beeps, which do not drown what is said. */
export const waiting: Melody = {
  everyMs: 5000,
  notes: [0, 0.4].map((at) => ({ at, hertz: 425, lasts: 0.2, level: 0.05 })),
}

function sound({ at, hertz, lasts, level }: Note, audio: AudioContext, into: AudioNode): void {
  const oscillator = audio.createOscillator()
  const gain = audio.createGain()
  const start = audio.currentTime + at
  oscillator.frequency.value = hertz
  gain.gain.setValueAtTime(0, start)
  gain.gain.linearRampToValueAtTime(level, start + 0.012)
  gain.gain.setTargetAtTime(0, start + lasts * 0.3, lasts * 0.22)
  oscillator.connect(gain).connect(into)
  oscillator.start(start)
  oscillator.stop(start + lasts * 1.6)
}

/**
 * Plays a melody until the returned function is called. A browser keeps the sound back until the first click or key on
 * the page; then the melody joins in. Without an AudioContext it plays nothing.
 */
export function playMelody(melody: Melody): () => void {
  if (typeof AudioContext === 'undefined') return () => {}
  const audio = new AudioContext()
  const over = new AbortController()
  let timer: ReturnType<typeof setInterval> | undefined
  const round = () => {
    for (const note of melody.notes) sound(note, audio, audio.destination)
  }
  const begin = () => {
    if (audio.state !== 'running' || timer !== undefined) return
    round()
    timer = setInterval(round, melody.everyMs)
  }
  const resume = () => void audio.resume().catch(() => {})
  for (const gesture of ['click', 'keydown']) {
    window.addEventListener(gesture, resume, { signal: over.signal, capture: true })
  }
  audio.addEventListener('statechange', begin, { signal: over.signal })
  resume()
  return () => {
    over.abort()
    clearInterval(timer)
    void audio.close()
  }
}
