package org.example.programs;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.StringReader;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.sax.SAXResult;
import javax.xml.transform.stream.StreamSource;
import org.apache.fop.apps.Fop;
import org.apache.fop.apps.FopFactory;
import org.apache.xmlgraphics.util.MimeConstants;

/** Formats a document of fifty pages as PDF, by FOP. Arguments: seconds. */
public final class Documents {
    private Documents() {}

    public static void main(String[] arguments) throws Exception {
        FopFactory factory = FopFactory.newInstance(new File(".").toURI());
        TransformerFactory transformers = TransformerFactory.newInstance();
        String document = document();
        Deadline.repeat(arguments, round -> {
            Fop fop = factory.newFop(MimeConstants.MIME_PDF, new ByteArrayOutputStream());
            transformers.newTransformer()
                    .transform(new StreamSource(new StringReader(document)), new SAXResult(fop.getDefaultHandler()));
        });
    }

    private static String document() {
        StringBuilder text = new StringBuilder("<fo:root xmlns:fo='http://www.w3.org/1999/XSL/Format'>"
                + "<fo:layout-master-set><fo:simple-page-master master-name='page' page-height='297mm'"
                + " page-width='210mm' margin='20mm'><fo:region-body/></fo:simple-page-master></fo:layout-master-set>"
                + "<fo:page-sequence master-reference='page'><fo:flow flow-name='xsl-region-body'>");
        for (int paragraph = 0; paragraph < 400; paragraph++) {
            text.append("<fo:block space-after='6pt' text-align='justify'>");
            for (int word = 0; word < 60; word++) {
                text.append(Integer.toString((paragraph * 60 + word) * 7919, 36)).append(' ');
            }
            text.append("</fo:block>");
        }
        return text.append("</fo:flow></fo:page-sequence></fo:root>").toString();
    }
}
