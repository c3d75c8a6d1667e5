// SPDX-License-Identifier: Apache-2.0
import { Answer, HandlerFunction, Request } from './index';

/** The answer that the operator would get, failures included. What a request has besides the object is filled in, or is in `more`. */
export function run(handlerFunction: HandlerFunction, thing: Record<string, any>, more?: Partial<Request>): Promise<Answer>;
