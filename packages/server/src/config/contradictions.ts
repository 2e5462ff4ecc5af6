import { makesSecret } from './secret-hint.ts'
import type { Config } from './settings.ts'
import { tracesUrlOf } from './traces-url.ts'
import { isLoopbackHost } from './values.ts'

/** Contradictions that single values cannot show. A field is undefined here where its own value was bad. */
export function contradictions(config: Partial<Config>): string[] {
  const problems: string[] = []
  const { tlsCert, tlsKey, turnUrls, turnSecrets, turnUsername, turnCredential, host: address } = config
  const hasWorkers = config.workers !== undefined && config.workers > 1
  if (tlsCert && tlsKey === null) problems.push('RINGWIRE_TLS_KEY is required with RINGWIRE_TLS_CERT')
  if (tlsKey && tlsCert === null) problems.push('RINGWIRE_TLS_CERT is required with RINGWIRE_TLS_KEY')
  if (turnUsername && turnCredential === null) {
    problems.push('RINGWIRE_TURN_CREDENTIAL is required with RINGWIRE_TURN_USERNAME')
  }
  if (turnCredential && turnUsername === null) {
    problems.push('RINGWIRE_TURN_USERNAME is required with RINGWIRE_TURN_CREDENTIAL')
  }
  if (turnSecrets && (turnUsername || turnCredential)) {
    problems.push('RINGWIRE_TURN_SECRET and fixed credentials (RINGWIRE_TURN_USERNAME) exclude each other')
  }
  if (turnUrls !== undefined && turnUrls.length > 0) {
    if (turnSecrets === null && turnUsername === null && turnCredential === null) {
      problems.push(
        `RINGWIRE_TURN_URLS needs RINGWIRE_TURN_SECRET, the static-auth-secret of coturn (${makesSecret}), or RINGWIRE_TURN_USERNAME and _CREDENTIAL`,
      )
    }
  }
  problems.push(...pushProblems(config), ...traceProblems(config))
  if (config.redisUrl) {
    if (config.databaseUrl === null) problems.push('REDIS_URL needs DATABASE_URL: nodes share their calls, too')
    if (config.jwtSecrets === null) {
      problems.push(
        'REDIS_URL needs RINGWIRE_JWT_SECRETS: all nodes sign with the same. To make it: RINGWIRE_JWT_SECRETS=k1:$(openssl rand -hex 32). To keep what a data directory signs with: ringwire migrate --print-jwt-secrets',
      )
    }
  } else if (config.redisUrl === null && hasWorkers && !config.demo) {
    problems.push('RINGWIRE_WORKERS over 1 needs REDIS_URL and DATABASE_URL: each worker is a node')
  }
  const { adminPort, adminHost, adminTokens } = config
  if (typeof adminPort === 'number' && adminHost !== undefined) {
    if (adminTokens === null && !isLoopbackHost(adminHost)) {
      problems.push(
        `RINGWIRE_ADMIN_TOKEN is required where RINGWIRE_ADMIN_HOST is no loopback address, as 127.0.0.1: ${makesSecret}`,
      )
    }
    if (adminPort !== 0 && adminPort === config.port) {
      problems.push('RINGWIRE_ADMIN_PORT has to be another port than RINGWIRE_PORT')
    }
  }
  if (config.demo === true && address !== undefined && !isLoopbackHost(address)) {
    problems.push(
      'RINGWIRE_DEMO is for this machine only: RINGWIRE_HOST must be a loopback address, as 127.0.0.1 (ringwire serve --lan opens it to the local network)',
    )
  }
  if (config.demo === 'lan' && tlsCert === null) {
    problems.push('RINGWIRE_DEMO=lan needs RINGWIRE_TLS_CERT: browsers give https pages a camera (--lan makes one)')
  }
  if (config.demo && hasWorkers) {
    problems.push('RINGWIRE_DEMO is for one process: only that process knows its people, so RINGWIRE_WORKERS must be 1')
  }
  return problems
}

/** Settings that have no effect without another one. */
export function withoutEffect(config: Partial<Config>): string[] {
  const { turnUrls, turnSecrets, turnUsername, rebalancePerSecond = 0, redisUrl } = config
  const { vapidPrivateKey, vapidPublicKey } = config
  const warnings: string[] = []
  const name = turnSecrets ? 'RINGWIRE_TURN_SECRET' : turnUsername ? 'RINGWIRE_TURN_USERNAME' : undefined
  if (turnUrls?.length === 0 && name !== undefined) warnings.push(`${name} has no effect without RINGWIRE_TURN_URLS`)
  if (vapidPublicKey && vapidPrivateKey === null) {
    warnings.push('RINGWIRE_VAPID_PUBLIC_KEY has no effect without RINGWIRE_VAPID_PRIVATE_KEY')
  }
  if (rebalancePerSecond > 0 && redisUrl === null) {
    warnings.push('RINGWIRE_REBALANCE_PER_SECOND has no effect without REDIS_URL: there are no other nodes')
  }
  return warnings
}

/** Times that are allowed, and make no sense together [CONF1]. */
export function oddTimes({ drainMs, pingIntervalMs, pongTimeoutMs, probeTimeoutMs }: Config): string[] {
  const warnings: string[] = []
  if (drainMs === 0) warnings.push('RINGWIRE_DRAIN_MS is 0: a node that stops closes all of its sockets at once')
  if (pongTimeoutMs > pingIntervalMs) {
    warnings.push('RINGWIRE_PONG_TIMEOUT_MS is longer than RINGWIRE_PING_INTERVAL_MS: a dead socket is found late')
  }
  if (probeTimeoutMs > pongTimeoutMs) {
    warnings.push(
      'RINGWIRE_PROBE_TIMEOUT_MS is longer than RINGWIRE_PONG_TIMEOUT_MS: a probe would find nothing earlier',
    )
  }
  return warnings
}

/** If traces are off, the other settings of OpenTelemetry do not matter. */
function traceProblems(config: Partial<Config>): string[] {
  const { otlpProtocol, tracesExporter } = config
  const problems: string[] = []
  if (tracesUrlOf(config) === undefined) return problems
  if (otlpProtocol !== undefined && otlpProtocol !== 'http/json') {
    problems.push(
      'OTEL_EXPORTER_OTLP_PROTOCOL must be http/json: Ringwire sends no protobuf and no gRPC. Collectors take http/json at port 4318',
    )
  }
  if (tracesExporter !== undefined && tracesExporter !== 'otlp') {
    problems.push('OTEL_TRACES_EXPORTER must be otlp or none')
  }
  return problems
}

/** Credentials of push services come as a whole. */
function pushProblems(config: Partial<Config>): string[] {
  const { vapidPrivateKey, vapidPublicKey, vapidSubject, apnsKey, apnsKeyId, apnsTeamId, apnsTopic } = config
  const problems: string[] = []
  if (vapidPrivateKey && vapidSubject === null) {
    problems.push('RINGWIRE_VAPID_SUBJECT is required with RINGWIRE_VAPID_PRIVATE_KEY')
  }
  if (vapidPrivateKey && vapidPublicKey && vapidPublicKey.replace(/=+$/, '') !== vapidPrivateKey.publicKey) {
    problems.push('RINGWIRE_VAPID_PUBLIC_KEY is not the one of RINGWIRE_VAPID_PRIVATE_KEY')
  }
  const ofApns = { RINGWIRE_APNS_KEY_ID: apnsKeyId, RINGWIRE_APNS_TEAM_ID: apnsTeamId, RINGWIRE_APNS_TOPIC: apnsTopic }
  for (const [name, value] of Object.entries(ofApns)) {
    if (apnsKey && value === null) problems.push(`${name} is required with RINGWIRE_APNS_KEY`)
  }
  return problems
}
