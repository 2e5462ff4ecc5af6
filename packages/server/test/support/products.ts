import { program } from '@ringwire/testkit/program'
import type { Service } from '@ringwire/testkit/service'

/** `ringwire products set …`, beside the running service. */
export async function setProduct(service: Service, product: string, ...settings: string[]): Promise<void> {
  await runBeside(service, 'products', 'set', product, ...settings)
}

/** A command, beside the running service; answers what it printed. */
export async function runBeside(service: Service, ...args: string[]): Promise<string> {
  const child = Bun.spawn([...program, ...args], {
    env: {
      PATH: process.env.PATH ?? '',
      RINGWIRE_DATA_DIR: service.dataDir,
      DATABASE_URL: service.env.DATABASE_URL ?? '',
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, out, err] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  if (code !== 0) throw new Error(err)
  return out
}
