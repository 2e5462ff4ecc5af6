/** Lines that somebody types, or that come from a pipe, and lines that appear meanwhile. */
import { createInterface } from 'node:readline'
import type { LineConsole, Terminal } from './command.ts'

export interface LineConsoleOptions {
  readonly input: NodeJS.ReadStream
  readonly output: NodeJS.WriteStream
  out(text: string): void
  err(text: string): void
  /** Of stdout, where it is one. */
  readonly terminal: Terminal | undefined
  /** What Tab completes a line to. */
  readonly words: readonly string[]
}

export function openLineConsole(options: LineConsoleOptions): LineConsole {
  const { input, output, out, err, terminal, words } = options
  const isInteractive = terminal !== undefined && input.isTTY === true
  const lines: string[] = []
  let waiting: ((line: string | null) => void) | undefined
  let isOver = false
  const reader = createInterface({
    input,
    ...(isInteractive ? { output, completer } : {}),
    terminal: isInteractive,
    prompt: '',
  })
  function completer(line: string): [string[], string] {
    return [words.filter((word) => word.startsWith(line)).map((word) => `${word} `), line]
  }
  reader.on('line', (line) => {
    if (waiting === undefined) lines.push(line)
    else waiting(line)
    waiting = undefined
  })
  reader.on('close', () => {
    isOver = true
    waiting?.(null)
    waiting = undefined
  })
  // Ctrl-C leaves as Ctrl-D does.
  reader.on('SIGINT', () => reader.close())

  /** Half-typed text moves to the end of the new output. */
  function above(write: () => void): void {
    if (isInteractive && !isOver) output.write('\r\u001b[K')
    write()
    if (isInteractive && !isOver && waiting !== undefined) reader.prompt(true)
  }

  return {
    isInteractive,
    nextLine(prompt = '') {
      const line = lines.shift()
      if (line !== undefined) return Promise.resolve(line)
      if (isOver) return Promise.resolve(null)
      const next = new Promise<string | null>((resolve) => {
        waiting = resolve
      })
      if (isInteractive) {
        reader.setPrompt(prompt)
        reader.prompt()
      }
      return next
    },
    print: (line) => above(() => out(`${line}\n`)),
    note: (line) => above(() => (terminal === undefined ? err(`${line}\n`) : out(`${terminal.paint('dim', line)}\n`))),
    close: () => reader.close(),
  }
}
