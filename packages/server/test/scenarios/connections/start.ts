import type { Service } from '@ringwire/testkit/service'

/** A composition of the service: how it is started with these settings. */
export type StartService = (env: Record<string, string>) => Promise<Service>

/** A service for one test. */
export async function withService(
  start: StartService,
  env: Record<string, string>,
  body: (service: Service) => Promise<void>,
): Promise<void> {
  const service = await start(env)
  try {
    await body(service)
  } finally {
    await service.dispose()
  }
}
