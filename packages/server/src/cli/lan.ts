/** `ringwire serve --lan`: what the service is configured with, so that a phone in the same network can open the demo. */
import type { Environment } from '../config/config.ts'
import { localNetworks } from '../config/lan.ts'
import { ensureCertificate } from './certificate.ts'
import { CommandFailure, exitCodes, readConfig, requireUsable, type Surroundings } from './command.ts'

/** The environment with the demo for local networks; host and certificate are the application's where it has them. */
export function lanEnvironment(surroundings: Surroundings): Environment {
  const { addresses } = localNetworks()
  if (addresses.length === 0)
    throw new CommandFailure(exitCodes.failed, '--lan: this machine has no IPv4 address in a local network.')
  const { env } = surroundings
  const lan = { ...env, RINGWIRE_HOST: env.RINGWIRE_HOST || '0.0.0.0', RINGWIRE_DEMO: 'lan' }
  if (env.RINGWIRE_TLS_CERT) return lan
  const { config } = readConfig({ env: { ...env, RINGWIRE_DEMO: '0' } })
  requireUsable(config)
  const { cert, key } = ensureCertificate(config.dataDir, addresses, surroundings.now())
  return { ...lan, RINGWIRE_TLS_CERT: cert, RINGWIRE_TLS_KEY: key }
}
