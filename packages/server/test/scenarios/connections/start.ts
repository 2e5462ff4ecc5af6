import type { Service } from '@ringwire/testkit/service'

/** A composition of the service: how it is started with these settings. */
export type StartService = (env: Record<string, string>) => Promise<Service>

let lastStart: Promise<unknown> = Promise.resolve()

/**
 * Tests that run together start their services one after the other: where all of them start at once, a busy machine takes
 * longer than a service waits for its stores.
 */
function startInTurn(start: StartService, env: Record<string, string>): Promise<Service> {
  const started = lastStart.then(() => start(env))
  lastStart = started.catch(() => {})
  return started
}

/** A service for one test. */
export async function withService(
  start: StartService,
  env: Record<string, string>,
  body: (service: Service) => Promise<void>,
): Promise<void> {
  const service = await startInTurn(start, env)
  try {
    await body(service)
  } finally {
    await service.dispose()
  }
}
