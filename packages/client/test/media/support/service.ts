import { join } from 'node:path'
import { makeTemporaryDirectory, type RunningProcess, startProcess } from '../../../../demo/test/support/process.ts'

export const testKey = { id: 'key', secret: 'a-product-secret-for-the-media-tests-alone' }

const main = join(import.meta.dir, '..', '..', '..', '..', 'server', 'src', 'main.ts')

export interface Person {
  userId: string
  role: string
  peerRole: string
  deviceId?: string
}

export interface Service {
  url: string
  /** What an application's backend does for its user. */
  token(person: Person): Promise<Response>
  /** Ends the process as given and starts it again on the same port, with the same data. */
  kill(signal: NodeJS.Signals): Promise<void>
  launch(): Promise<void>
  stop(): Promise<void>
}

/** The real service as a process of its own, on any free port. */
export async function startService(settings: Record<string, string> = {}): Promise<Service> {
  const data = await makeTemporaryDirectory()
  let running: RunningProcess | undefined
  let port = '0'
  let url = ''

  async function launch(): Promise<void> {
    running = startProcess([process.execPath, main, 'serve'], {
      RINGWIRE_HOST: '127.0.0.1',
      RINGWIRE_PORT: port,
      RINGWIRE_DATA_DIR: data.path,
      RINGWIRE_BOOTSTRAP_KEYS: `${testKey.id}:${testKey.secret}:shop`,
      ...settings,
    })
    ;[, url = ''] = await running.waitFor(/Ringwire listens on (http:\/\/\S+)/)
    port = new URL(url).port
  }

  await launch()
  return {
    url,
    token: ({ userId, role, peerRole, deviceId }) =>
      fetch(`${url}/v1/call/session-token`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          'X-SVC-Product-Key-ID': testKey.id,
          'X-SVC-Product-Secret': testKey.secret,
        },
        body: JSON.stringify({
          ...{ context_type: 'order', context_id: '1042', user_id: userId, role, display_name: userId },
          ...{ allowed_peer_role: peerRole, ...(deviceId === undefined ? {} : { device_id: deviceId }) },
        }),
      }),
    async kill(signal) {
      await running?.stop(signal)
    },
    launch,
    async stop() {
      await running?.stop()
      await data.remove()
    },
  }
}
