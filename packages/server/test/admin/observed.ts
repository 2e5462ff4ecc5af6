import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { systemProgram } from '@ringwire/testkit/system'

/** A service with a listener for operators on a port of its own. */
export async function startObserved(env: Record<string, string> = {}): Promise<Service> {
  const service = new Service({ RINGWIRE_ADMIN_PORT: '0', ...env })
  try {
    return await service.start()
  } catch (error) {
    await service.dispose()
    throw error
  }
}

/** The address at which operators find it, as the service says. */
export async function adminUrlOf(service: Service): Promise<string> {
  const find = () => /"url":"([^"]+)","message":"listening for operators"/.exec(service.log)?.[1]
  await until('it says where operators find it', () => find() !== undefined)
  return find() ?? ''
}

export type Metrics = ReadonlyMap<string, number>

export async function metricsOf(service: Service): Promise<Metrics> {
  const response = await fetch(`${await adminUrlOf(service)}/metrics`)
  if (response.status !== 200) throw new Error(`/metrics: ${response.status} ${await response.text()}`)
  return parse(await response.text())
}

/** Values by the names of their samples, labels included. */
export function parse(text: string): Metrics {
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  )
}

/** Resolves when the metrics are so. */
export async function untilMetrics(service: Service, what: string, isSo: (metrics: Metrics) => boolean): Promise<void> {
  await until(what, async () => isSo(await metricsOf(service)))
}

/** What promtool says of a text or of files; its exit code is 0 where it finds nothing wrong. */
export async function promtool(args: readonly string[], input = ''): Promise<{ code: number; said: string }> {
  const child = Bun.spawn([systemProgram('promtool'), ...args], {
    stdin: new Blob([input]),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const said = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code: await child.exited, said: said.join('') }
}
