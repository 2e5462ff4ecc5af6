import { createAsyncApi } from './asyncapi.ts'
import { callStatesPage } from './call-states.ts'
import { clientApiPage } from './client-api.ts'
import { endReasonsPage } from './end-reasons.ts'
import { closeCodesPage, errorsPage } from './error-guide.ts'
import { limitsPage } from './limits.ts'
import { createOpenApi } from './openapi.ts'
import { configurationPage } from './tables.ts'

/** Every document by its file name. The same code gives the same text: no dates, no random values. */
export function createDocuments(): Map<string, string> {
  const json = (document: object) => `${JSON.stringify(document, null, 2)}\n`
  return new Map([
    ['openapi.json', json(createOpenApi())],
    ['asyncapi.json', json(createAsyncApi())],
    ['errors.md', errorsPage()],
    ['close-codes.md', closeCodesPage()],
    ['end-reasons.md', endReasonsPage()],
    ['limits.md', limitsPage()],
    ['configuration.md', configurationPage()],
    ['call-states.md', callStatesPage()],
    ['client-api.md', clientApiPage()],
  ])
}
