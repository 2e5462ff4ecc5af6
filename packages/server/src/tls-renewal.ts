/** The certificate of the service while it runs: a renewed one on the disk is shown to new connections [TLS1]. */
import { isReadableAgain } from './config/secret-files.ts'
import { pairProblems, readTlsFiles, type TlsPair, type TlsPaths } from './config/tls-files.ts'
import type { Logger } from './observability/logger.ts'

/** A change is seen within 10 s, also when a first look found one file of two. */
const lookMs = 3_000

export interface TlsRenewal {
  /** Looks now, and says what is wrong at once. */
  look(): void
  stop(): void
}

export interface TlsRenewalOptions {
  readonly paths: TlsPaths
  /** The certificate that the service shows now. */
  readonly pair: TlsPair
  /** Resolves when new connections get it; rejects where the runtime refuses it. */
  readonly renew: (pair: TlsPair) => Promise<void>
  readonly logger: Logger
}

export function createTlsRenewal({ paths, pair, renew, logger }: TlsRenewalOptions): TlsRenewal {
  let shown = pair
  /** The problem at the last look, and whether the log has it. */
  let wrong = { problem: '', isTold: false }

  function look(isAsked: boolean): void {
    const problem = problemOf(isAsked)
    if (problem !== wrong.problem) wrong = { problem, isTold: false }
    // An operator who renews them writes one file after the other: a problem of a moment is only reported on request.
    else if (problem !== '' && !wrong.isTold) tell()
    if (isAsked && problem !== '') tell()
  }

  function tell(): void {
    wrong.isTold = true
    logger.error({ reason: wrong.problem }, 'the renewed certificate cannot be used: the one before is kept')
  }

  /** Empty where the service shows what the files hold. */
  function problemOf(isAsked: boolean): string {
    try {
      const found = readTlsFiles(paths)
      if (found.cert === shown.cert && found.key === shown.key) {
        if (isAsked) logger.info({}, 'the certificate has not changed')
        return ''
      }
      const problems = pairProblems(found, paths)
      if (problems.length > 0) return problems.join('; ')
      shown = found
      void show(found)
      return ''
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  async function show(found: TlsPair): Promise<void> {
    try {
      await renew(found)
      logger.info({}, 'new connections get the renewed certificate')
    } catch (error) {
      logger.error({ error }, 'the renewed certificate cannot be used: the one before is kept')
    }
  }

  // A pipe was read once, and has nothing more.
  const isWatched = isReadableAgain(paths.cert) && isReadableAgain(paths.key)
  const timer = isWatched ? setInterval(() => look(false), lookMs) : undefined
  return {
    look() {
      if (isWatched) look(true)
    },
    stop: () => clearInterval(timer),
  }
}
