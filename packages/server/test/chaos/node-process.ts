import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { program } from '@ringwire/testkit/program'
import type { Subprocess } from 'bun'
import type { Bug, Crash } from './recording.ts'

/** Of what a node logs the end is kept. */
const keptLog = 20_000
const restartPauseMs = 100
/** Long after the time to drain: a node that has not ended by then never will. */
const endPatienceMs = 60_000

/**
 * Whether a line of the log has an error that does not come from a store; a node that does not start says so too, and is
 * tried again.
 */
function isBug(line: string): boolean {
  if (!line.includes('"level":"error"')) return false
  const { error, message } = JSON.parse(line)
  return error !== undefined && error.name !== 'StoreError' && message !== 'the service did not start'
}

export interface NodeProcessOptions {
  readonly index: number
  readonly env: Readonly<Record<string, string>>
  readonly at: () => number
}

/** One node as a process of its own, always on the same port. */
export class NodeProcess {
  readonly index: number
  readonly crashes: Crash[] = []
  /** What it logged as a bug. */
  readonly bugs: Bug[] = []
  url = ''
  private readonly options: NodeProcessOptions
  readonly dataDir = mkdtempSync(join(tmpdir(), 'ringwire-chaos-'))
  private child: Subprocess<'ignore', 'pipe', 'pipe'> | undefined
  private log = ''
  /** A signal asked it to end. */
  private ending = true
  private isDisposed = false

  constructor(options: NodeProcessOptions) {
    this.index = options.index
    this.options = options
  }

  /** Starts it; where a store is away, again and again until it is there. */
  async start(): Promise<void> {
    while (!this.isDisposed && !(await this.tryToStart())) await Bun.sleep(restartPauseMs)
  }

  private async tryToStart(): Promise<boolean> {
    const child = Bun.spawn([...program, 'serve'], {
      env: {
        PATH: process.env.PATH ?? '',
        RINGWIRE_DATA_DIR: this.dataDir,
        RINGWIRE_PORT: this.url === '' ? '0' : new URL(this.url).port,
        ...this.options.env,
      },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    this.child = child
    this.ending = false
    void this.collect(child.stderr)
    let text = ''
    const decoder = new TextDecoder()
    const reader = child.stdout.getReader()
    while (!text.includes('\n')) {
      const { done, value } = await reader.read()
      if (done) break
      text += decoder.decode(value, { stream: true })
    }
    const url = /Ringwire listens on (\S+)/.exec(text)?.[1]
    if (url === undefined) {
      this.ending = true
      await child.exited
      return false
    }
    reader.releaseLock()
    this.url = url
    void this.watch(child)
    return true
  }

  private async collect(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const bytes of stream) {
      const text = decoder.decode(bytes, { stream: true })
      this.log = (this.log + text).slice(-keptLog)
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines.filter(isBug)) this.bugs.push({ node: this.index, at: this.options.at(), line })
    }
  }

  private async watch(child: Subprocess): Promise<void> {
    const code = await child.exited
    if (child !== this.child || this.ending) return
    this.crashed(code)
    await this.start()
  }

  private crashed(code: number | null): void {
    this.crashes.push({ node: this.index, at: this.options.at(), code, log: this.log.slice(-2_000) })
  }

  /** Why it does not start. */
  get lastLog(): string {
    return this.log
  }

  signal(signal: NodeJS.Signals): void {
    this.child?.kill(signal)
  }

  /** kill -9. */
  async kill(): Promise<void> {
    this.ending = true
    this.child?.kill('SIGKILL')
    await this.child?.exited
  }

  /** SIGTERM; a node that does not end with code 0, or not at all, is reported as a crash. */
  async terminate(): Promise<void> {
    this.ending = true
    this.child?.kill('SIGTERM')
    const late = setTimeout(() => this.child?.kill('SIGKILL'), endPatienceMs)
    const code = (await this.child?.exited) ?? 0
    clearTimeout(late)
    if (code !== 0) this.crashed(code)
  }

  async dispose(): Promise<void> {
    this.isDisposed = true
    this.signal('SIGCONT')
    await this.kill()
    rmSync(this.dataDir, { recursive: true, force: true })
  }
}
