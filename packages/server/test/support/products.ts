import type { Service } from '@ringwire/testkit/service'

const mainFile = new URL('../../src/main.ts', import.meta.url).pathname

/** `ringwire products set …`, beside the running service. */
export async function setProduct(service: Service, product: string, ...settings: string[]): Promise<void> {
  const child = Bun.spawn([process.execPath, mainFile, 'products', 'set', product, ...settings], {
    env: {
      PATH: process.env.PATH ?? '',
      RINGWIRE_DATA_DIR: service.dataDir,
      DATABASE_URL: service.env.DATABASE_URL ?? '',
    },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  if ((await child.exited) !== 0) throw new Error(await new Response(child.stderr).text())
}
