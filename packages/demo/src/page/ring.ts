// Ringing and ring-back from oscillators: the page needs no sound file.

type Note = { at: number; hertz: number; seconds: number; level: number }
type Melody = { every: number; notes: Note[] }

const bell = (at: number, hertz: number): Note[] => [
  { at, hertz, seconds: 0.9, level: 0.16 },
  { at, hertz: hertz * 2.01, seconds: 0.45, level: 0.05 },
]
const incoming: Melody = {
  every: 2400,
  notes: [...bell(0, 587.33), ...bell(0.16, 739.99), ...bell(0.32, 880), ...bell(0.48, 739.99), ...bell(0.64, 880)],
}
const outgoing: Melody = { every: 4000, notes: [{ at: 0, hertz: 425, seconds: 1, level: 0.05 }] }

export function createRing() {
  let audio: AudioContext | undefined
  let timer: ReturnType<typeof setInterval> | undefined
  let playing: OscillatorNode[] = []

  function play(note: Note, audio: AudioContext): void {
    const oscillator = audio.createOscillator()
    const gain = audio.createGain()
    const start = audio.currentTime + note.at
    oscillator.frequency.value = note.hertz
    gain.gain.setValueAtTime(0, start)
    gain.gain.linearRampToValueAtTime(note.level, start + 0.012)
    gain.gain.setTargetAtTime(0, start + note.seconds * 0.3, note.seconds * 0.22)
    oscillator.connect(gain).connect(audio.destination)
    oscillator.start(start)
    oscillator.stop(start + note.seconds * 1.6)
    playing.push(oscillator)
    oscillator.addEventListener('ended', () => {
      playing = playing.filter((other) => other !== oscillator)
    })
  }

  function stop(): void {
    clearInterval(timer)
    for (const oscillator of playing) oscillator.stop()
    playing = []
  }

  function repeat(melody: Melody): void {
    stop()
    const once = () => {
      // Browsers keep the sound back until the first click or key on the page; then it joins in.
      if (audio?.state === 'running') for (const note of melody.notes) play(note, audio)
      if (melody === incoming) navigator.vibrate?.([200, 100, 200])
    }
    once()
    timer = setInterval(once, melody.every)
  }

  return {
    /** Call from a click or a key: only then may a page start to sound. */
    unlock(): void {
      audio ??= new AudioContext()
      if (audio.state === 'suspended') void audio.resume()
    },
    incoming: () => repeat(incoming),
    outgoing: () => repeat(outgoing),
    stop,
  }
}

export type Ring = ReturnType<typeof createRing>
