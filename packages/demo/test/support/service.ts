import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeTemporaryDirectory, type RunningProcess, startProcess } from './process.ts'

export type Service = {
  url: string
  productSecret: string
  output(): string
  /** Ends the process as given and starts it again on the same port, with the same data. */
  restart(signal: NodeJS.Signals): Promise<void>
  stop(): Promise<void>
}

/** The real service as a process of its own, with the demo page, on any free port. */
export async function startService(settings: Record<string, string> = {}): Promise<Service> {
  const data = await makeTemporaryDirectory()

  async function launch(port: string): Promise<{ running: RunningProcess; url: string }> {
    const running = startProcess([process.execPath, 'packages/server/src/main.ts', 'serve'], {
      RINGWIRE_DEMO: '1',
      RINGWIRE_HOST: '127.0.0.1',
      RINGWIRE_PORT: port,
      RINGWIRE_DATA_DIR: data.path,
      ...settings,
    })
    const [, url = ''] = await running.waitFor(/Ringwire listens on (http:\/\/\S+)/)
    return { running, url }
  }

  let { running, url } = await launch('0')
  return {
    url,
    // The demo has a key of its own, and the service keeps its secret here for the toy backend alone.
    productSecret: (await readFile(join(data.path, 'demo-secret'), 'utf8')).trim(),
    output: () => running.output(),
    async restart(signal) {
      await running.stop(signal)
      ;({ running, url } = await launch(new URL(url).port))
    },
    async stop() {
      await running.stop()
      await data.remove()
    },
  }
}
