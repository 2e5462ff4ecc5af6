/** A command that somebody types into: through a pipe, or in a terminal. */
import { overdue } from '@ringwire/testkit/patience'
import { direct, type Ended } from './command.ts'

export interface Typist {
  /** Types a line. */
  type(line: string): void
  /** The end of the input. */
  endInput(): void
  /** The next text that fits, after those that were waited for before; of a pipe, only of standard output. */
  sees(pattern: RegExp): Promise<RegExpExecArray>
  readonly ended: Promise<Ended>
  kill(): void
  /** As Ctrl-C. */
  interrupt(): void
}

/** How long is waited for what should come. A bound for failures, never a pace. */
const patienceMs = 30_000

function createScreen() {
  let text = ''
  let from = 0
  let isOver = false
  let news = Promise.withResolvers<void>()
  const wake = () => {
    news.resolve()
    news = Promise.withResolvers()
  }
  return {
    text: () => text,
    add(more: string) {
      text += more
      wake()
    },
    end() {
      isOver = true
      wake()
    },
    async sees(pattern: RegExp): Promise<RegExpExecArray> {
      let isLate = false
      const cancel = overdue(patienceMs, () => {
        isLate = true
        wake()
      })
      try {
        for (;;) {
          const found = pattern.exec(text.slice(from))
          if (found !== null) {
            from += found.index + found[0].length
            return found
          }
          if (isOver || isLate) throw new Error(`${pattern} never came:\n${text}`)
          await news.promise
        }
      } finally {
        cancel()
      }
    },
  }
}

async function read(stream: ReadableStream<Uint8Array>, add: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  for await (const bytes of stream) add(decoder.decode(bytes, { stream: true }))
}

export function startTyping(args: string[], env: Record<string, string>): Typist {
  const child = Bun.spawn([...direct, ...args], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const screen = createScreen()
  let err = ''
  const streams = [
    read(child.stdout, screen.add),
    read(child.stderr, (text) => {
      err += text
    }),
  ]
  const ended = (async () => {
    const code = await child.exited
    await Promise.all(streams)
    screen.end()
    return { code, out: screen.text(), err }
  })()
  return {
    type(line) {
      child.stdin.write(`${line}\n`)
      child.stdin.flush()
    },
    endInput: () => void child.stdin.end(),
    sees: screen.sees,
    ended,
    kill: () => child.kill('SIGKILL'),
    interrupt: () => child.kill('SIGINT'),
  }
}

/** In a terminal: what is seen is what is on the screen, with its escapes. */
export function startInTerminal(args: string[], env: Record<string, string>): Typist {
  const screen = createScreen()
  const decoder = new TextDecoder()
  const child = Bun.spawn([...direct, ...args], {
    env: { PATH: process.env.PATH ?? '', TERM: 'xterm-256color', ...env },
    terminal: { cols: 200, rows: 50, data: (_terminal, bytes) => screen.add(decoder.decode(bytes, { stream: true })) },
  })
  const ended = (async () => {
    const code = await child.exited
    screen.end()
    return { code, out: screen.text(), err: '' }
  })()
  return {
    type: (line) => void child.terminal?.write(`${line}\r`),
    endInput: () => void child.terminal?.write('\u0004'),
    sees: screen.sees,
    ended,
    kill: () => child.kill('SIGKILL'),
    interrupt: () => child.kill('SIGINT'),
  }
}
